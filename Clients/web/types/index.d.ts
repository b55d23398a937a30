export type Configuration = import('./types.js').Configuration;
export type TokenProvider = import('./types.js').TokenProvider;
export type TokenRequest = import('./types.js').TokenRequest;
export type Receipt = import('./types.js').Receipt;
export type FlushResult = import('./types.js').FlushResult;
export type Snapshot = import('./types.js').Snapshot;
export type QuarantinedEvent = import('./types.js').QuarantinedEvent;
export type AuthenticationFailure = import('./types.js').AuthenticationFailure;
export { Countersign, CountersignError } from "./client.js";
