// The declarations of Foundation that the façade and its samples use.
#include <ObjectiveC/NSObject.h>
#pragma clang assume_nonnull begin

@interface NSString : NSObject
@end

@interface NSDictionary<Key, Value> : NSObject
@end

void NSLog(NSString *format, ...);

#pragma clang assume_nonnull end
