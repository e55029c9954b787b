/** Reports a failing case: its manifest, the case itself, and the command that replays it. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Case, Finding } from '../case.ts'
import { play } from '../play.ts'

const directory = 'traces'

/** @returns lines to print. */
export async function writeFailure(given: Case, finding: Finding): Promise<readonly string[]> {
  mkdirSync(directory, { recursive: true })
  const base = join(directory, `fuzz-${given.part}-${given.seed}-${finding.oracle}`)
  // Keep rejected objects: in the part `names` the rejection may be the failure.
  const isAboutNames = finding.oracle === 'sameUnderOtherNames'
  const accepted = isAboutNames ? given.objects : (await play(given)).accepted
  const again = isManifestEnough(given)
    ? `npm start -- -f ${base}.yaml`
    : `npm run fuzz -- --case ${base}.json`
  writeFileSync(`${base}.json`, `${JSON.stringify({ ...given, objects: accepted }, null, 2)}\n`)
  const head = [
    `${finding.oracle}: ${finding.text}`,
    `Found by npm run fuzz -- --only ${given.part} --seed ${given.seed} --cases 1; plays with: ${again}`,
  ]
  const comments = head.flatMap((line) => line.split('\n')).map((line) => `# ${line}\n`)
  // JSON documents are valid YAML.
  const documents = accepted.map((object) => `---\n${JSON.stringify(object, null, 2)}\n`)
  writeFileSync(`${base}.yaml`, [...comments, ...documents].join(''))
  return [
    `  smallest case: ${accepted.map(({ kind, metadata }) => `${kind} ${metadata.name}`).join(', ')} (${base}.yaml)`,
    `  ${finding.text.split('\n')[0]?.slice(0, 500)}`,
    `  again: ${again}`,
  ]
}

/** Whether the manifest alone reproduces the case. */
function isManifestEnough({ provider, settings, steps, surroundings }: Case): boolean {
  const { gitVersion: _, ...others } = surroundings
  const isPlain = Object.keys(settings).length === 0 && steps.length === 0
  return provider === 'exoscale' && isPlain && Object.keys(others).length === 0
}
