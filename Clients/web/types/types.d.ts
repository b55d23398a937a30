export * from '../src/types.js';
