// Braze's Objective-C samples of SDK Authentication, unchanged. The code around them is the app's part.
#import <Foundation/Foundation.h>
#import "BrazeCompat-Swift.h"

NSString *getNewSignatureSomehow(BRZSDKAuthenticationError *error);

@interface AppDelegate : NSObject <BrazeSDKAuthDelegate>
@property(class, nonatomic) Braze *braze;
@end

void enable(void) {
BRZConfiguration *configuration =
    [[BRZConfiguration alloc] initWithApiKey:@"{BRAZE_API_KEY}"
                                    endpoint:@"{BRAZE_ENDPOINT}"];
configuration.api.sdkAuthentication = YES;
Braze *braze = [[Braze alloc] initWithConfiguration:configuration];
AppDelegate.braze = braze;
}

void setToken(void) {
[AppDelegate.braze changeUser:@"userId" sdkAuthSignature:@"signature"];
[AppDelegate.braze setSDKAuthenticationSignature:@"signature"];
}

void subscribe(BRZConfiguration *configuration, id<BrazeSDKAuthDelegate> delegate) {
Braze *braze = [[Braze alloc] initWithConfiguration:configuration];
braze.sdkAuthDelegate = delegate;
AppDelegate.braze = braze;
}

@implementation AppDelegate
@dynamic braze;

// Method to implement in delegate
- (void)braze:(Braze *)braze sdkAuthenticationFailedWithError:(BRZSDKAuthenticationError *)error {
  // TODO: Optionally log to your error-reporting service
  // TODO: Check if the `user_id` within the `error` matches the currently logged-in user
  NSLog(@"Invalid SDK Authentication signature.");
  NSString *newSignature = getNewSignatureSomehow(error);
  [AppDelegate.braze setSDKAuthenticationSignature:newSignature];
}
@end
