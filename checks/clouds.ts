/**
 * Finds files that name a cloud without permission: only a cloud's module (`packages/provider-NAME`, listed in
 * packages/cli/src/providers.ts) knows it. Prints one line per place and exits 1 if there is any.
 */
import { execFileSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { basename, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')

/** Where clouds may be named, and why. */
const allowed: readonly (readonly [RegExp, string])[] = [
  [/^packages\/provider-[a-z-]+\//, 'the packages of the clouds'],
  [/^simulators\//, 'the simulated clouds'],
  [/^packages\/cli\/src\/providers\.ts$/, 'the list of the clouds'],
  [/^packages\/[a-z]+\/package\.json$|^package-lock\.json$/, 'npm wants dependencies by their names'],
  [/\.test\.ts$|\.test-support\.ts$|\.test\.yaml$|\/testdata\//, 'tests use a cloud'],
  [/^(bench|conformance|test)\//, 'they measure and test with the nodes of a cloud'],
  [/^(docs|examples)\/|(^|\/)[A-Z]+\.md$/, 'documents and examples'],
  [
    /^charts\/[a-z-]+\/(crds|templates)\/[a-z]+\.[a-z0-9.-]+\.yaml$/,
    'definitions, written by npm run charts',
  ],
  [/^charts\/[a-z-]+\/((providers|rules)\/|values\.|Chart\.)/, 'written from the modules by npm run charts'],
  [/^charts\/cluster-autoscaler\/templates\//, "values of Cluster Autoscaler's chart that name clouds"],
  [/^monitoring\/[a-z]+\/(tenon-)?[a-z]+-cloud\./, 'rules and dashboards of single clouds'],
  [/^package\.json$/, 'the tools of the real control plane'],
  [
    /^packages\/cluster-autoscaler\/src\/options\/flags\//,
    'flags of Cluster Autoscaler have names of clouds',
  ],
  [/^checks\/folder-layers\.ts$/, 'layers of folders within packages'],
  [/^packages\/api\/src\/crds\/template\.ts$/, "a label domain that Karpenter's own definitions restrict"],
]

const names = globSync('packages/provider-*', { cwd: root }).map((path) =>
  basename(path).replace(/^provider-/, ''),
)
const mention = new RegExp(names.map((name) => name.replaceAll('-', '[- ]?')).join('|'), 'gi')

const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
  maxBuffer: 2 ** 26,
})
  .split('\0')
  .filter((path) => path !== '')

const used = new Set<RegExp>()
const violations: string[] = []
for (const path of new Set(files)) {
  const found = mentionsIn(path, contentOf(path) ?? '')
  if (found.length === 0) continue
  const place = allowed.find(([pattern]) => pattern.test(path))
  if (place === undefined) violations.push(...found)
  else used.add(place[0])
}
for (const [pattern, reason] of allowed)
  if (!used.has(pattern))
    violations.push(`checks/clouds.ts allows ${pattern} (${reason}), where no cloud is named`)

/** Undefined if the file was deleted. */
function contentOf(path: string): string | undefined {
  try {
    return readFileSync(resolve(root, path), 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function mentionsIn(path: string, text: string): readonly string[] {
  return text.split('\n').flatMap((line, index) => {
    const [name] = line.match(mention) ?? []
    return name === undefined
      ? []
      : [`${path}:${index + 1}: names the cloud ${name}; take it from the modules`]
  })
}

for (const violation of violations) console.error(violation)
console.log(`clouds: ${violations.length} violation(s)`)
process.exitCode = violations.length === 0 ? 0 : 1
