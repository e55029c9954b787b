/**
 * Checks ARCHITECTURE.md against what runs: each file that its two flows name is entered when they are played,
 * and each file of the folders below that a pending pod enters is named. Prints one line per violation, and
 * exits 1 if there is any.
 */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { Coverage } from '../test/walk/coverage.ts'
import { flows } from '../test/walk/flows.ts'
import { play } from '../test/walk/walk.ts'

const operator = 'packages/operator/src/'
const followed = ['state/', 'decide/', 'provisioning/'].map((folder) => `${operator}${folder}`)
/** The flows decide without a thread, so that virtual time can wait for it, and all nodes are healthy. */
const notPlayed: ReadonlySet<string> = new Set([
  `${operator}decide/thread-decider.ts`,
  `${operator}node/health.ts`,
])

const text = readFileSync(resolve(import.meta.dirname, '../ARCHITECTURE.md'), 'utf8')
const [, pod = ''] = /^## One pending pod\n(.*?)^## /ms.exec(text) ?? []
const [, claim = ''] = /^## One NodeClaim\n(.*?)^## /ms.exec(text) ?? []

/** Files and folders; `engine/src/…` is in another package. */
function namedIn(section: string): readonly string[] {
  const names = [...section.matchAll(/`([\w./-]+(?:\.ts|\/))`/g)].map(([, name = '']) => name)
  return names.map((name) => (/^[\w-]+\/src\//.test(name) ? `packages/${name}` : `${operator}${name}`))
}

const coverage = new Coverage()
const ran = new Set<string>()
const entered = new Set<string>()
for (const name of ['pod', 'nodeclaim', 'consolidation']) {
  const played = await play(coverage, flows[name] as NonNullable<(typeof flows)[string]>)
  for (const file of played.ran) ran.add(file)
  if (name === 'pod') for (const file of played.own.keys()) entered.add(file)
}

const named = namedIn(pod)
const hasRun = (name: string): boolean =>
  name.endsWith('/') ? [...ran].some((file) => file.startsWith(name)) : ran.has(name)
const all = [...new Set([...named, ...namedIn(claim)])]
const violations = [
  ...all
    .filter((name) => !hasRun(name) && !notPlayed.has(name))
    .map((name) => `ARCHITECTURE.md: ${name} is named, but does not run`),
  ...[...entered]
    .filter((file) => followed.some((folder) => file.startsWith(folder)) && !named.includes(file))
    .map((file) => `ARCHITECTURE.md: a pending pod enters ${file}, which "One pending pod" does not name`),
]
for (const violation of violations) console.error(violation)
console.log(`${all.length} names of ARCHITECTURE.md checked, ${violations.length} violation(s)`)
process.exit(violations.length === 0 ? 0 : 1)
