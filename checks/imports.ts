/**
 * Checks imports against the package map (docs/design/0001-package-map.md): which package may import which, and
 * which folder within some packages (folder-layers.ts), one entry point per package, no cycles between files,
 * an engine without I/O. Prints one line per violation and exits 1 if there is any.
 */
import { globSync, readFileSync } from 'node:fs'
import { glob } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { parseSync } from 'oxc-parser'
import { layers } from './folder-layers.ts'

const root = resolve(import.meta.dirname, '..')

/** Folder names of the packages of clouds. */
const clouds = globSync('packages/provider-*', { cwd: root }).map((path) => basename(path))

/** The simulated clouds; the package of the folder NAME is `simulator-NAME`. */
const simulated = globSync('simulators/*', { cwd: root }).map((path) => basename(path))
const simulators = simulated.map((name) => `simulator-${name}`)

const core = ['api', 'kube', 'provider', 'runtime']
const everything = [
  ...core,
  'ask',
  'cel',
  'cluster-autoscaler',
  'console',
  'devcluster',
  'engine',
  'filters',
  'operator',
  ...clouds,
]

/** Packages of this repository that a package may import. */
const arrows = new Map<string, readonly string[]>([
  ['runtime', []],
  ['api', []],
  ['cel', ['api']],
  ['engine', ['api', 'cel']],
  ['kube', ['api', 'runtime']],
  ['provider', ['api', 'devcluster', 'kube', 'runtime']],
  ...clouds.map((name): [string, readonly string[]] => [name, core]),
  ['operator', ['engine', ...core]],
  ['filters', ['api', 'cel']],
  ['cluster-autoscaler', ['filters', ...core]],
  ['ask', ['devcluster', 'engine', 'filters', 'operator', ...core]],
  ['console', ['ask', 'operator', ...core]],
  ['devcluster', ['api', 'cel', 'filters', 'runtime']],
  ...simulated.map((name): [string, readonly string[]] => [
    `simulator-${name}`,
    ['api', 'devcluster', 'provider', `provider-${name}`, 'runtime'],
  ]),
  ['world', [...everything.filter((name) => name !== 'console'), ...simulators]],
  ['cli', [...everything, ...simulators]],
])

/** What its tests may import besides: a provider is tested with the simulator of its cloud, a command in a world. */
const testArrows = new Map<string, readonly string[]>([
  ...simulated.map((name): [string, readonly string[]] => [
    `provider-${name}`,
    ['devcluster', `simulator-${name}`],
  ]),
  ['cli', ['world']],
])

/** Imports of types only: nothing of the package is loaded. */
const typesOnly: ReadonlySet<string> = new Set(['provider devcluster'])

/** Additional entry points of packages that only tests may use. */
const testDoors: ReadonlySet<string> = new Set([
  '@tenon/api/scheduler-cases',
  '@tenon/ask/test-clusters',
  '@tenon/devcluster/scheduling-verdicts',
  '@tenon/devcluster/test-api',
  '@tenon/provider/contract-suite',
  ...simulators.map((name) => `@tenon/${name}/fixture`),
])

/** Additional entry points that load less than the main one, or what most users do not need. */
const smallDoors: ReadonlySet<string> = new Set([
  '@tenon/api/duration',
  '@tenon/api/flags',
  '@tenon/api/unified-diff',
  '@tenon/ask/cost',
  '@tenon/ask/explain',
  '@tenon/ask/play',
  '@tenon/ask/record',
  '@tenon/ask/report',
  '@tenon/ask/rounding',
  '@tenon/ask/schema',
  '@tenon/ask/simulate',
  '@tenon/ask/snapshot',
  '@tenon/cluster-autoscaler/names',
  '@tenon/devcluster/crd-checker',
  '@tenon/engine/consolidation',
  '@tenon/engine/objects',
  '@tenon/operator/objects',
  '@tenon/operator/process-metrics',
  '@tenon/operator/questions',
])

/** The part of a cloud's package that can be loaded without the rest. */
const cloudDoor = /^@tenon\/provider-[a-z-]+\/module$/

interface Source {
  /** Path from the repository's root. */
  readonly path: string
  readonly packageName: string
  readonly isTest: boolean
  readonly imports: readonly string[]
  /** The {@link imports} that are loaded, not only used for types. */
  readonly loads: ReadonlySet<string>
}

async function sources(): Promise<readonly Source[]> {
  const found: Source[] = []
  for await (const path of glob('{packages,simulators,test}/*/src/**/*.ts', { cwd: root })) {
    const { module } = parseSync(path, readFileSync(join(root, path), 'utf8'))
    const exported = module.staticExports.flatMap(({ entries }) =>
      entries.flatMap(({ moduleRequest, isType }) =>
        moduleRequest === null ? [] : [{ target: moduleRequest.value, isLoaded: !isType }],
      ),
    )
    const imported = module.staticImports.map(({ moduleRequest, entries }) => ({
      target: moduleRequest.value,
      isLoaded: entries.length === 0 || entries.some(({ isType }) => !isType),
    }))
    const all = [...imported, ...exported]
    found.push({
      path,
      packageName: packageOf(path),
      isTest: /\.test\.ts$|test-support/.test(path),
      imports: all.map(({ target }) => target),
      loads: new Set(all.filter(({ isLoaded }) => isLoaded).map(({ target }) => target)),
    })
  }
  return found.toSorted((a, b) => (a.path < b.path ? -1 : 1))
}

function packageOf(path: string): string {
  const [folder, name = ''] = path.split('/')
  return folder === 'simulators' ? `simulator-${name}` : name
}

function packageViolations(source: Source): readonly string[] {
  return source.imports.flatMap((target) => {
    const match = /^@tenon\/([^/]+)(\/.*)?$/.exec(target)
    if (match === null) {
      const isImpure =
        ['cel', 'engine'].includes(source.packageName) && !source.isTest && target.startsWith('node:')
      return isImpure ? [`${source.path}: ${source.packageName} must not import ${target}`] : []
    }
    const [, name = '', deep] = match
    const isTestDoor = source.isTest && testDoors.has(target)
    if (deep !== undefined && !isTestDoor && !smallDoors.has(target) && !cloudDoor.test(target))
      return [`${source.path}: import @tenon/${name} by its name, not ${target}`]
    const isAllowed =
      arrows.get(source.packageName)?.includes(name) === true ||
      (source.isTest && testArrows.get(source.packageName)?.includes(name) === true)
    if (!isAllowed) return [`${source.path}: ${source.packageName} must not import @tenon/${name}`]
    const isOnlyForTypes = typesOnly.has(`${source.packageName} ${name}`)
    return isOnlyForTypes && source.loads.has(target)
      ? [`${source.path}: ${source.packageName} may import types alone of @tenon/${name}`]
      : []
  })
}

function relativeTargets(source: Source): readonly string[] {
  return source.imports
    .filter((target) => target.startsWith('.'))
    .map((target) => relative(root, resolve(root, dirname(source.path), target)))
}

/** The manifest of the repository has the version; tests carry the Dockerfile out. */
const outsidePackages: ReadonlySet<string> = new Set(['package.json', 'release/dockerfile.ts'])

function escapes(source: Source): readonly string[] {
  const own = `${source.path.split('/', 2).join('/')}/`
  return relativeTargets(source)
    .filter((target) => !target.startsWith(own) && !outsidePackages.has(target))
    .map((target) => `${source.path}: ${target} belongs to another package; import that by its name`)
}

/** @param place a package such as `cli`, or a folder in its `src` such as `cli/commands`. */
function layerViolations(all: readonly Source[], place: string): readonly string[] {
  const [packageName = '', ...inside] = place.split('/')
  const base = join('packages', packageName, 'src', ...inside, '/')
  /** Undefined for files outside of these folders, which compose them. */
  const folderOf = (path: string): string | undefined => {
    const [folder, ...rest] = path.startsWith(base) ? path.slice(base.length).split('/') : []
    return rest.length > 0 ? folder : undefined
  }
  const order = layers[place] ?? []
  const product = all.filter((source) => source.packageName === packageName && !source.isTest)
  const folders = new Set(product.map(({ path }) => folderOf(path)).filter((folder) => folder !== undefined))
  const isUpward = (from: string | undefined, to: string | undefined) =>
    from !== undefined && to !== undefined && order.indexOf(to) > order.indexOf(from)
  return [
    ...[...folders.symmetricDifference(new Set(order))].map(
      (folder) => `checks/folder-layers.ts: ${place} has no folder ${folder}, or names no layer for it`,
    ),
    ...product.flatMap((source) =>
      relativeTargets(source)
        .filter((target) => isUpward(folderOf(source.path), folderOf(target)))
        .map((target) => `${source.path}: ${target} is of a higher layer`),
    ),
  ]
}

/** Cycles between files, each reported once from its first file. */
function cycles(all: readonly Source[]): readonly string[] {
  const targets = new Map(all.map((source) => [source.path, relativeTargets(source)]))
  const state = new Map<string, 'open' | 'done'>()
  const found: string[] = []
  const visit = (path: string, trail: readonly string[]): void => {
    if (state.get(path) === 'done') return
    if (state.get(path) === 'open') {
      found.push(`import cycle: ${[...trail.slice(trail.indexOf(path)), path].join(' -> ')}`)
      return
    }
    state.set(path, 'open')
    for (const target of targets.get(path) ?? []) visit(target, [...trail, path])
    state.set(path, 'done')
  }
  for (const { path } of all) visit(path, [])
  return found
}

const all = await sources()
const violations = [
  ...all.flatMap((source) => [...packageViolations(source), ...escapes(source)]),
  ...Object.keys(layers).flatMap((name) => layerViolations(all, name)),
  ...cycles(all),
]
for (const violation of violations) console.error(violation)
console.log(`imports of ${all.length} files checked, ${violations.length} violation(s)`)
process.exitCode = violations.length === 0 ? 0 : 1
