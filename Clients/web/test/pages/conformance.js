// Scenarios of Conformance over IndexedDB, as scripts/web-test.py asks for them.
import { DiskStore } from '../../src/disk-store.js';
import { Bench, watched } from '../bench.js';
import { run, scenariosOf } from '../scenarios.js';

/** Seconds. What waits longer makes so many requests that a disk is too slow for it. */
const longest = 3600;

/** What became of the scenarios of a file. */
window.conformance = async (text) => {
  const outcomes = [];
  for (const scenario of scenariosOf(text)) {
    const seconds = scenario.steps.reduce((sum, { wait = 0 }) => sum + wait, 0);
    // The limit of the disk is no setting.
    if (seconds > longest || scenario.configuration?.maximum_events) continue;
    const bench = new Bench();
    bench.disk = watched(new DiskStore(indexedDB, scenario.name));
    const failure = await run(scenario, bench).then(() => null, (error) => error.message);
    outcomes.push({ name: scenario.name, failure });
  }
  return outcomes;
};
window.ready = true;
