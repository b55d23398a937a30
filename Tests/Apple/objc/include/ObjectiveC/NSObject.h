// The declarations of the Objective-C runtime that Braze+ObjectiveC.swift and its samples use.
typedef _Bool BOOL;
typedef long NSInteger;
typedef unsigned long NSUInteger;
#define YES 1
#define NO 0

@protocol NSObject
- (BOOL)isEqual:(id)object;
@property(readonly) NSUInteger hash;
@end

__attribute__((objc_root_class))
@interface NSObject <NSObject>
+ (instancetype)alloc;
- (instancetype)init;
@end
