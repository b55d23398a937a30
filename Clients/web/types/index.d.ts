export type Configuration = import('./types').Configuration;
export type TokenProvider = import('./types').TokenProvider;
export type TokenRequest = import('./types').TokenRequest;
export type Receipt = import('./types').Receipt;
export type FlushResult = import('./types').FlushResult;
export type Snapshot = import('./types').Snapshot;
export type QuarantinedEvent = import('./types').QuarantinedEvent;
export type AuthenticationFailure = import('./types').AuthenticationFailure;
export { Countersign, CountersignError } from "./client.js";
