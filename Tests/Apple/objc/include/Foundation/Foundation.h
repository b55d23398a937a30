// As much of Foundation as the façade and its samples use. Declarations only.
#include <ObjectiveC/NSObject.h>
#pragma clang assume_nonnull begin

@interface NSString : NSObject
@end

@interface NSDictionary<Key, Value> : NSObject
@end

void NSLog(NSString *format, ...);

#pragma clang assume_nonnull end
