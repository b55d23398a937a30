// The scenarios that every client passes (Conformance/README.md).
import { appendFileSync, readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { run, scenariosOf } from './scenarios.js';

const folder = new URL('../../../Conformance/scenarios/', import.meta.url);
const report = process.env.COUNTERSIGN_CONFORMANCE_REPORT;

for (const file of readdirSync(folder).filter((one) => one.endsWith('.json')).sort()) {
  for (const scenario of scenariosOf(readFileSync(new URL(file, folder), 'utf8'))) {
    test(scenario.name, { timeout: 60_000 }, async () => {
      let passed = false;
      try {
        await run(scenario);
        passed = true;
      } finally {
        if (report) appendFileSync(report, `${JSON.stringify({ mode: 'signed_user', name: scenario.name, passed })}\n`);
      }
    });
  }
}
