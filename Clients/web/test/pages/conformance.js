// Runs scenarios of Conformance over IndexedDB, for test/chromium.
import { DiskStore } from '../../src/disk-store.js';
import { Bench, watched } from '../bench.js';
import { run, scenariosOf } from '../scenarios.js';

/** Runs the scenarios in the text of a file. Returns their results. */
window.conformance = async (text) => {
  const outcomes = [];
  for (const scenario of scenariosOf(text)) {
    const bench = new Bench();
    bench.disk = watched(new DiskStore(indexedDB, scenario.name));
    const failure = await run(scenario, bench).then(() => null, (error) => error.message);
    outcomes.push({ mode: 'signed_user', name: scenario.name, failure });
  }
  return outcomes;
};
window.ready = true;
