/** Generates the cases of each part from seeds. */
import { SeededRandom } from '@tenon/runtime'
import { type KubeObject, parseResource } from '@tenon/api'
import { Dice } from '../../simulation/workload/workload-context.ts'
import {
  type AnswerFault,
  type Case,
  type CaseSettings,
  type Step,
  type Surroundings,
  unreadableAnswers,
} from '../case.ts'
import { aCatalogue, zones } from './catalogue.ts'
import { aWorkload } from './cluster.ts'
import { hostileNames, type Names, plainNames } from './names.ts'
import { rarityOf } from './pod-spec.ts'
import { somePools } from './pools.ts'

/** Parts whose cases consist of objects. */
export const caseParts = [
  'engine',
  'cluster',
  'cloud',
  'groups',
  'evidence',
  'price',
  'names',
  'answers',
] as const

type CasePart = (typeof caseParts)[number]

/** Which part of the product a case tests. */
export const parts = [...caseParts, 'stories'] as const

export type Part = (typeof parts)[number]

/** One sentence for each part. */
export const partTexts: Readonly<Record<Part, string>> = {
  engine: 'decisions alone, many a second: random catalogues, unpriced types, zones under other names',
  cluster: 'random catalogues of the simulated provider, pods with every field scheduling looks at',
  cloud: 'the same on the simulated Exoscale with its real catalogue, unpriced types included',
  groups:
    'the same on the simulated Clever Cloud, with NodeGroups of others, quotas and flavors that are refused',
  evidence: 'guests that see less than their type, schedulers that refuse, types that are sold out, quotas',
  price: 'plain pods: the fleet is compared with a plain first fit',
  names: 'keys such as `constructor` wherever users name things',
  answers: 'APIs that answer 200 and nothing, half a body, HTML, a redirect, another object',
  stories: 'short stories of the world with views that deceive, clouds that lie, kubelets under other names',
}

/** Generates the case of a seed; deterministic. */
export function drawCase(part: CasePart, seed: number): Case {
  const random = new SeededRandom(`fuzz-${part}-${seed}`)
  const dice = new Dice(random)
  return drawn[part](dice, seed)
}

/** Permutes the names of zones in a case. */
export function underOtherZones(given: Case): Case {
  const others = new Map(zones.map((zone, index) => [zone, zones[(index + 1) % zones.length]]))
  const text = JSON.stringify(given).replaceAll(/zone-[abc]/g, (zone) => others.get(zone as 'zone-a') ?? zone)
  return JSON.parse(text) as Case
}

/** Replaces inherited names such as `constructor` by plain ones, in a case of the part `names`. */
export function underPlainNames(given: Case): Case {
  const plain = new Map<string, string>(
    (Object.entries(hostileNames(given.seed)) as [keyof Names, string][]).flatMap(([use, name]) => [
      [name, plainNames[use]],
      [`example.com/${name}`, `example.com/${plainNames[use]}`],
      [name.toLowerCase(), plainNames[use]],
    ]),
  )
  const renamed = (value: unknown): unknown => {
    if (typeof value === 'string') return plain.get(value) ?? value
    if (Array.isArray(value)) return value.map(renamed)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([key, each]) => [plain.get(key) ?? key, renamed(each)]),
    )
  }
  return renamed(given) as Case
}

const drawn: Readonly<Record<CasePart, (dice: Dice, seed: number) => Case>> = {
  engine: (dice, seed) => {
    const base = onKwok(dice, seed, 'engine', dice.chance(0.2) ? hostileNames(seed) : plainNames, 1)
    const names = ((base.catalogue ?? []) as readonly { readonly name: string }[]).map(({ name }) => name)
    const unpriced = dice.chance(0.3) ? names.filter(() => dice.chance(0.4)) : []
    return { ...base, surroundings: { ...base.surroundings, unpriced } }
  },
  cluster: (dice, seed) => onKwok(dice, seed, 'cluster', plainNames, 1),
  cloud: (dice, seed) => onExoscale(dice, seed, 'cloud', plainNames, 1),
  groups: (dice, seed) => {
    const base = onCleverCloud(dice, seed, 'groups', plainNames, 1)
    const hardship = dice.oneOf<Surroundings>([
      {},
      {},
      { memoryPercent: dice.oneOf([97, 93]) },
      { quota: dice.oneOf([0, 4, 10, 24]) },
      { soldOut: ['2XS', 'XS', 'S'].slice(0, dice.between(1, 3)) },
    ])
    return {
      ...base,
      objects: [...base.objects, ...someGroups(dice)],
      surroundings: { ...base.surroundings, ...hardship },
      minutes: dice.oneOf([22, 22, 40]),
    }
  },
  evidence: (dice, seed) => {
    const base = dice.chance(0.75)
      ? onExoscale(dice, seed, 'evidence', plainNames, 0.3)
      : onKwok(dice, seed, 'evidence', plainNames, 0.3)
    const surroundings = { ...base.surroundings, ...adversities(dice, base) }
    const { memoryPercent } = surroundings
    const tight = memoryPercent !== undefined && dice.chance(0.6) ? aTightPod(dice, base, memoryPercent) : []
    return { ...base, objects: [...base.objects, ...tight], surroundings, minutes: 70 }
  },
  price: (dice, seed) =>
    dice.chance(0.5)
      ? onKwok(dice, seed, 'price', plainNames, 0)
      : onExoscale(dice, seed, 'price', plainNames, 0),
  names: (dice, seed) =>
    dice.chance(0.5)
      ? onKwok(dice, seed, 'names', hostileNames(seed), 1.5)
      : onExoscale(dice, seed, 'names', hostileNames(seed), 1.5),
  answers: (dice, seed) => {
    const base = onExoscale(dice, seed, 'answers', plainNames, 0.3)
    const surroundings = { ...base.surroundings, answers: someFaults(dice) }
    return { ...base, steps: someSteps(dice, base), surroundings, minutes: 40 }
  },
}

function someSettings(dice: Dice, rarity: number): { settings: CaseSettings; gitVersion: string } {
  const gitVersion = dice.oneOf(['v1.34.1', 'v1.36.0'])
  if (rarity === 0 || dice.chance(0.6)) return { settings: {}, gitVersion }
  const settings = dice.oneOf<CaseSettings>([
    { preferences: 'Ignore' },
    { minValues: 'BestEffort' },
    { featureGates: { plannedPlacement: false } },
    { featureGates: { plannedPlacement: true } },
    { featureGates: { globalConsolidation: false } },
    { featureGates: { spotToSpotConsolidation: true } },
  ])
  return { settings, gitVersion }
}

function sizesOf(dice: Dice): { readonly apps: number; readonly replicas: number } {
  return dice.oneOf([
    { apps: 1, replicas: 2 },
    { apps: 2, replicas: 4 },
    { apps: 3, replicas: 10 },
    { apps: 2, replicas: 40 },
    { apps: 6, replicas: 4 },
  ])
}

function onKwok(dice: Dice, seed: number, part: Part, names: Names, rarity: number): Case {
  const { settings, gitVersion } = someSettings(dice, rarity)
  const catalogue = aCatalogue(dice, names)
  const pools = somePools(dice, names, 'kwok')
  const own = catalogue === undefined ? ['test-zone-a', 'test-zone-b'] : zones
  const most = largest(catalogue as readonly Listed[] | undefined)
  const workload = aWorkload({
    dice,
    names,
    zones: own,
    most,
    rare: rarityOf(dice, rarity),
    ...sizesOf(dice),
  })
  return {
    part,
    seed,
    provider: 'kwok',
    ...(catalogue && { catalogue }),
    objects: [...pools, ...workload],
    steps: [],
    settings,
    surroundings: { gitVersion, ...(dice.chance(0.3) && { volumesPerNode: 3 }) },
    minutes: 22,
  }
}

function onExoscale(dice: Dice, seed: number, part: Part, names: Names, rarity: number): Case {
  const { settings, gitVersion } = someSettings(dice, rarity)
  const pools = somePools(dice, names, 'exoscale', 2)
  const most = dice.oneOf([
    { cpuMillis: 3700, memoryMib: 7700 },
    { cpuMillis: 1700, memoryMib: 3600 },
    { cpuMillis: 7700, memoryMib: 32_000 },
  ])
  const workload = aWorkload({
    dice,
    names,
    zones: ['ch-gva-2'],
    most,
    rare: rarityOf(dice, rarity),
    ...sizesOf(dice),
  })
  return {
    part,
    seed,
    provider: 'exoscale',
    objects: [...pools, ...workload],
    steps: [],
    settings,
    surroundings: { gitVersion, ...(dice.chance(0.3) && { volumesPerNode: 3 }) },
    minutes: 22,
  }
}

function onCleverCloud(dice: Dice, seed: number, part: Part, names: Names, rarity: number): Case {
  const { settings, gitVersion } = someSettings(dice, rarity)
  const pools = somePools(dice, names, 'clever-cloud', 2)
  const most = dice.oneOf([
    { cpuMillis: 3900, memoryMib: 3500 },
    { cpuMillis: 7900, memoryMib: 10_900 },
    { cpuMillis: 15_900, memoryMib: 29_500 },
  ])
  const workload = aWorkload({
    dice,
    names,
    zones: ['par'],
    most,
    rare: rarityOf(dice, rarity),
    ...sizesOf(dice),
  })
  return {
    part,
    seed,
    provider: 'clever-cloud',
    objects: [...pools, ...workload],
    steps: [],
    settings,
    surroundings: { gitVersion, ...(dice.chance(0.3) && { volumesPerNode: 3 }) },
    minutes: 22,
  }
}

/** NodeGroups of users, some with labels like those that Tenon writes. No pod of a case runs there. */
function someGroups(dice: Dice): readonly KubeObject[] {
  return Array.from({ length: dice.oneOf([0, 1, 3]) }, (_, index) => {
    const own = dice.oneOf<Readonly<Record<string, string>>>([
      {},
      { 'karpenter.clever-cloud.com/managed': 'true' },
      { 'karpenter.clever-cloud.com/managed': 'true', 'karpenter.clever-cloud.com/nodeclaim': 'gone' },
      { 'karpenter.clever-cloud.com/nodepool': 'pool-0', 'karpenter.clever-cloud.com/managed': 'yes' },
    ])
    const object = {
      apiVersion: 'api.clever-cloud.com/v1',
      kind: 'NodeGroup',
      metadata: { name: `mine-${index}`, ...(Object.keys(own).length > 0 && { labels: own }) },
      spec: {
        flavor: dice.oneOf(['2XS', 'XS', 'M']),
        nodeCount: dice.oneOf([0, 1, 1, 3]),
        ...(dice.chance(0.3) && { labels: { 'karpenter.sh/nodepool': 'pool-0' } }),
        taints: [{ key: 'example.com/mine', value: 'true', effect: 'NoSchedule' }],
      },
    }
    return object
  })
}

/** Scales workloads up and down, so that instances are launched and removed. */
function someSteps(dice: Dice, { objects }: Case): readonly Step[] {
  const scaled = objects.filter(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet')
  return scaled.flatMap(({ apiVersion, kind, metadata }) => {
    const { name, namespace = 'default' } = metadata
    const to = (atMs: number, replicas: number): Step => ({
      atMs,
      patch: { apiVersion, kind, namespace, name, by: { spec: { replicas } } },
    })
    return [
      to(dice.between(30, 90) * 1000, dice.between(0, 2)),
      to(dice.between(200, 400) * 1000, dice.between(1, 4)),
    ]
  })
}

interface Listed {
  readonly resources: { readonly cpu: string; readonly memory: string }
}

/** The maximum requests of a pod: most of an ordinary type, so that some types are too small. */
function largest(types: readonly Listed[] | undefined): { cpuMillis: number; memoryMib: number } {
  if (types === undefined) return { cpuMillis: 7500, memoryMib: 15_000 }
  const sorted = types
    .map(({ resources }) => ({
      cpuMillis: parseResource('cpu', resources.cpu) - 200,
      memoryMib: parseResource('memory', resources.memory) / 2 ** 20 - 100,
    }))
    .toSorted((a, b) => a.cpuMillis - b.cpuMillis)
  return sorted[sorted.length >> 1] ?? { cpuMillis: 1000, memoryMib: 1000 }
}

function adversities(dice: Dice, { provider, objects }: Case): Surroundings {
  const apps = objects.flatMap(({ kind, metadata }) =>
    ['Deployment', 'StatefulSet', 'Pod', 'Job'].includes(kind)
      ? [metadata.name.replace(/^(app-\d+)-\d+$/, '$1')]
      : [],
  )
  const refused = dice.pick(apps)
  return dice.oneOf<Surroundings>([
    { memoryPercent: dice.oneOf([97, 97, 92, 80]) },
    refused === undefined ? {} : { refusedApps: [refused] },
    refused === undefined ? {} : { refusedApps: [refused] },
    { memoryPercent: 95, ...(refused !== undefined && { refusedApps: [refused] }) },
    provider === 'exoscale'
      ? { soldOut: ['standard.small', 'standard.medium', 'standard.large'].slice(0, dice.between(1, 3)) }
      : { memoryPercent: 97 },
    provider === 'exoscale' ? { quota: dice.between(0, 3) } : { memoryPercent: 97 },
  ])
}

/** A pod that fits an instance by its nominal memory, but not by what the guest sees. */
function aTightPod(dice: Dice, { provider, catalogue }: Case, memoryPercent: number): readonly KubeObject[] {
  const nominalMib =
    provider === 'exoscale'
      ? dice.oneOf([2048, 4096, 8192, 16_384])
      : largest(catalogue as readonly Listed[] | undefined).memoryMib
  const reservedMib = provider === 'exoscale' ? 400 : 10
  const [least, most] = [nominalMib * (memoryPercent / 100), nominalMib].map((mib) => mib - reservedMib)
  const memory = `${dice.between((least ?? 0) + 1, (most ?? 0) - 1)}Mi`
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'tight-0', namespace: 'default', labels: { app: 'tight' } },
    spec: {
      containers: [
        {
          name: 'app',
          image: 'registry.k8s.io/pause',
          resources: { requests: { cpu: dice.oneOf(['10m', '500m']), memory } },
        },
      ],
    },
  }
  return [pod]
}

/** Calls that the operator makes. */
const calls: readonly Pick<AnswerFault, 'server' | 'method' | 'resource' | 'isSingle'>[] = [
  ...(['nodeclaims', 'nodes', 'pods', 'nodepools', 'exoscalenodeclasses'] as const).flatMap((resource) => [
    { server: 'kubernetes' as const, method: 'GET', resource, isSingle: false },
    { server: 'kubernetes' as const, method: 'GET', resource, isSingle: true },
    { server: 'kubernetes' as const, method: 'PATCH', resource, isSingle: true },
  ]),
  { server: 'kubernetes', method: 'POST', resource: 'nodeclaims', isSingle: false },
  { server: 'kubernetes', method: 'POST', resource: 'secrets', isSingle: false },
  { server: 'kubernetes', method: 'DELETE', resource: 'nodeclaims', isSingle: true },
  { server: 'kubernetes', method: 'DELETE', resource: 'nodes', isSingle: true },
  ...(
    ['instance', 'instance-type', 'operation', 'template', 'security-group', 'sks-cluster'] as const
  ).flatMap((resource) => [
    { server: 'cloud' as const, method: 'GET', resource, isSingle: false },
    { server: 'cloud' as const, method: 'GET', resource, isSingle: true },
  ]),
  { server: 'cloud', method: 'POST', resource: 'instance', isSingle: false },
  { server: 'cloud', method: 'DELETE', resource: 'instance', isSingle: true },
]

function someFaults(dice: Dice): readonly AnswerFault[] {
  return Array.from({ length: dice.oneOf([1, 1, 2]) }, () => {
    const call = dice.pick(calls) ?? { server: 'cloud', method: 'GET', resource: 'instance', isSingle: false }
    const bound = dice.oneOf([{ times: 1 }, { times: 3 }, { forMs: 60_000 }, { forMs: 240_000 }])
    return {
      ...call,
      answer: dice.oneOf(unreadableAnswers),
      atMs: dice.oneOf([0, 1000, 10_000, 30_000, 60_000, 300_000]),
      ...bound,
    }
  })
}
