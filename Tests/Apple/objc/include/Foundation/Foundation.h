// The declarations of Foundation that Braze+ObjectiveC.swift and its samples use.
#include <ObjectiveC/NSObject.h>
#pragma clang assume_nonnull begin

@interface NSString : NSObject
@end

@interface NSDictionary<Key, Value> : NSObject
@end

void NSLog(NSString *format, ...);

#pragma clang assume_nonnull end
