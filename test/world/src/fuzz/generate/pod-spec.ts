/** Random pod specs with every field that scheduling may depend on. */
import {
  type Affinity,
  labels,
  type PodAffinityTerm,
  type PodSpec,
  type ResourceRequirements,
  type Toleration,
  type TopologySpreadConstraint,
} from '@tenon/api'
import type { Dice } from '../../simulation/workload/workload-context.ts'
import { zones } from './catalogue.ts'
import type { Names } from './names.ts'

/** What a case focuses on; fields of other themes are rarer. */
const themes = [
  'initContainers',
  'selectors',
  'nodeAffinity',
  'podAffinity',
  'podAntiAffinity',
  'tolerations',
  'spread',
  'hostNetwork',
  'hostPorts',
  'overhead',
  'priority',
  'gates',
  'volumes',
  'devices',
] as const

type Theme = (typeof themes)[number]

/**
 * Whether to generate a field.
 * @param usual its probability in a case of its theme.
 */
export type Rarity = (theme: Theme, usual: number) => boolean

/**
 * Draws some themes.
 * @param rarity 0: none of the fields at all.
 */
export function rarityOf(dice: Dice, rarity: number): Rarity {
  const drawn = new Set(Array.from({ length: 3 }, () => dice.oneOf(themes)))
  return (theme, usual) => dice.chance(Math.min(0.8, usual * rarity * (drawn.has(theme) ? 6 : 0.4)))
}

/** What a pod spec may refer to. */
export interface PodContext {
  readonly dice: Dice
  readonly names: Names
  readonly app: string
  /** All applications, including this one. */
  readonly apps: readonly string[]
  /** Values of the zone label. */
  readonly zones: readonly string[]
  /** Names of existing claims. */
  readonly claims: readonly string[]
  readonly storageClasses: readonly string[]
  readonly priorityClasses: readonly string[]
  /** The largest request that fits some node. */
  readonly most: { readonly cpuMillis: number; readonly memoryMib: number }
  readonly rare: Rarity
}

/** Draws everything except images. */
export function aPodSpec(context: PodContext): Partial<PodSpec> & { readonly containers: readonly object[] } {
  const { dice, rare } = context
  const spec: Record<string, unknown> = {
    containers: [aContainer(context, 'app'), ...(dice.chance(0.1) ? [aContainer(context, 'second')] : [])],
  }
  if (rare('initContainers', 0.1)) spec['initContainers'] = someInitContainers(context)
  if (rare('selectors', 0.2)) spec['nodeSelector'] = aSelector(context)
  const affinity = anAffinity(context)
  if (Object.keys(affinity).length > 0) spec['affinity'] = affinity
  if (rare('tolerations', 0.25)) spec['tolerations'] = someTolerations(context)
  if (rare('spread', 0.2)) spec['topologySpreadConstraints'] = someSpreads(context)
  if (rare('hostNetwork', 0.05)) spec['hostNetwork'] = true
  if (rare('overhead', 0.05)) spec['overhead'] = { cpu: '50m', memory: '20Mi' }
  if (rare('priority', 0.1) && context.priorityClasses.length > 0)
    spec['priorityClassName'] = dice.pick(context.priorityClasses)
  if (rare('priority', 0.04)) spec['preemptionPolicy'] = 'Never'
  if (rare('gates', 0.03)) spec['schedulingGates'] = [{ name: 'example.com/wait' }]
  if (rare('gates', 0.03)) spec['schedulerName'] = 'other-scheduler'
  if (dice.chance(0.05)) spec['terminationGracePeriodSeconds'] = dice.oneOf([0, 1, 600])
  if (rare('devices', 0.02)) spec['resourceClaims'] = [{ name: 'device', resourceClaimName: 'no-such-claim' }]
  const volumes = rare('volumes', 0.15) ? someVolumes(context) : []
  if (volumes.length > 0) spec['volumes'] = volumes
  return spec as unknown as ReturnType<typeof aPodSpec>
}

function aContainer(context: PodContext, name: string): object {
  const { dice, rare } = context
  const ports = aHostPort()
  return {
    name,
    image: 'registry.k8s.io/pause',
    resources: someResources(context),
    ...(ports !== undefined && { ports: [ports] }),
  }
  function aHostPort(): object | undefined {
    if (!rare('hostPorts', 0.1)) return undefined
    return {
      containerPort: dice.oneOf([80, 9100]),
      hostPort: dice.oneOf([8080, 9100]),
      ...(dice.chance(0.2) && { protocol: 'UDP' }),
      ...(dice.chance(0.15) && { hostIP: dice.oneOf(['127.0.0.1', '10.0.0.1']) }),
    }
  }
}

function someResources({ dice, most, names, rare }: PodContext): ResourceRequirements {
  // Usually a small part of the largest node; sometimes nothing, all of it, or more.
  const share = dice.oneOf([0.01, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.9, 1])
  const cpu = `${Math.max(1, Math.round(most.cpuMillis * share))}m`
  const memory = `${Math.max(1, Math.round(most.memoryMib * dice.oneOf([0.01, 0.05, 0.1, 0.3, 0.45, 0.9])))}Mi`
  const kind = dice.oneOf([
    'both',
    'both',
    'both',
    'both',
    'cpu',
    'memory',
    'limits',
    'none',
    'tooMuch',
  ] as const)
  if (kind === 'none') return {}
  if (kind === 'tooMuch' && dice.chance(0.3)) return { requests: { cpu: '4000', memory } }
  const requests = {
    ...(kind !== 'memory' && { cpu }),
    ...(kind !== 'cpu' && { memory }),
    ...(dice.chance(0.04) && { 'ephemeral-storage': dice.oneOf(['1Gi', '15Gi', '500Gi']) }),
  }
  const device = rare('devices', 0.1) ? { [`example.com/${names.device}`]: dice.oneOf(['1', '2']) } : {}
  if (kind === 'limits') return { limits: { ...requests, ...device } }
  return Object.keys(device).length === 0
    ? { requests }
    : { requests: { ...requests, ...device }, limits: device }
}

function someInitContainers(context: PodContext): readonly object[] {
  const { dice } = context
  const sidecar = { ...aContainer(context, 'sidecar'), restartPolicy: 'Always' }
  const plain = aContainer(context, 'prepare')
  return dice.oneOf([[sidecar], [plain], [sidecar, plain], [plain, sidecar]])
}

/** Values of a custom key that both pools and pods use. */
export const values = ['red', 'blue'] as const

function aSelector({ dice, names, zones: own }: PodContext): Readonly<Record<string, string>> {
  const zone = dice.pick(own) ?? zones[0]
  return dice.oneOf<Readonly<Record<string, string>>>([
    { [names.team]: dice.oneOf(values) },
    { [names.tier]: dice.oneOf(values) },
    { [labels.zone]: zone },
    { [labels.capacityType]: dice.oneOf(['on-demand', 'spot']) },
    { [labels.arch]: dice.oneOf(['amd64', 'arm64']) },
    { [labels.os]: 'linux' },
  ])
}

function anExpression({ dice, names, zones: own }: PodContext): object {
  const custom = dice.oneOf([names.team, names.tier, names.rack])
  return dice.oneOf<() => object>([
    () => ({ key: custom, operator: dice.oneOf(['In', 'NotIn']), values: [dice.oneOf(values)] }),
    () => ({ key: custom, operator: dice.oneOf(['Exists', 'DoesNotExist']) }),
    () => ({
      key: names.version,
      operator: dice.oneOf(['Gt', 'Lt']),
      values: [dice.oneOf(['1', '3', '10'])],
    }),
    () => ({ key: labels.zone, operator: dice.oneOf(['In', 'NotIn']), values: [dice.pick(own) ?? 'zone-a'] }),
    () => ({ key: labels.hostname, operator: dice.oneOf(['NotIn', 'In']), values: ['no-such-node'] }),
    () => ({ key: labels.capacityType, operator: 'In', values: ['spot', 'on-demand'] }),
    () => ({ key: labels.arch, operator: 'NotIn', values: ['arm64'] }),
    () => ({ key: labels.nodePool, operator: dice.oneOf(['Exists', 'DoesNotExist']) }),
  ])()
}

function anAffinity(context: PodContext): Affinity {
  const { dice, rare } = context
  const terms = (): object => ({
    nodeSelectorTerms: Array.from({ length: dice.between(1, 2) }, () => ({
      matchExpressions: Array.from({ length: dice.between(1, 2) }, () => anExpression(context)),
    })),
  })
  const affinity: Record<string, unknown> = {}
  const [required, preferred] = [rare('nodeAffinity', 0.15), rare('nodeAffinity', 0.1)]
  if (required || preferred)
    affinity['nodeAffinity'] = {
      ...(required && { requiredDuringSchedulingIgnoredDuringExecution: terms() }),
      ...(preferred && {
        preferredDuringSchedulingIgnoredDuringExecution: [
          { weight: dice.between(1, 100), preference: { matchExpressions: [anExpression(context)] } },
        ],
      }),
    }
  if (rare('podAffinity', 0.12)) affinity['podAffinity'] = podTerms(context)
  if (rare('podAntiAffinity', 0.15)) affinity['podAntiAffinity'] = podTerms(context)
  return affinity
}

function podTerms(context: PodContext): object {
  const { dice } = context
  const hard = (): PodAffinityTerm => aPodTerm(context)
  const soft = (): object => ({ weight: dice.between(1, 100), podAffinityTerm: aPodTerm(context) })
  return dice.oneOf<() => object>([
    () => ({ requiredDuringSchedulingIgnoredDuringExecution: [hard()] }),
    () => ({ requiredDuringSchedulingIgnoredDuringExecution: [hard()] }),
    () => ({ preferredDuringSchedulingIgnoredDuringExecution: [soft()] }),
    () => ({
      requiredDuringSchedulingIgnoredDuringExecution: [hard()],
      preferredDuringSchedulingIgnoredDuringExecution: [soft()],
    }),
  ])()
}

function aTopologyKey({ dice, names }: PodContext): string {
  return dice.oneOf([
    labels.hostname,
    labels.hostname,
    labels.zone,
    labels.zone,
    labels.capacityType,
    names.rack,
  ])
}

function aPodTerm(context: PodContext): PodAffinityTerm {
  const { dice, app, apps, names } = context
  const target = dice.chance(0.7) ? app : (dice.pick(apps) ?? app)
  return {
    topologyKey: aTopologyKey(context),
    labelSelector: dice.oneOf<() => NonNullable<PodAffinityTerm['labelSelector']>>([
      () => ({ matchLabels: { app: target } }),
      () => ({ matchLabels: { app: target } }),
      () => ({ matchExpressions: [{ key: 'app', operator: 'In', values: [target, app] }] }),
      () => ({ matchExpressions: [{ key: names.tier, operator: dice.oneOf(['Exists', 'DoesNotExist']) }] }),
      () => ({}),
    ])(),
    ...(dice.chance(0.1) && { namespaces: ['default', 'other'] }),
    ...(dice.chance(0.05) && { namespaceSelector: {} }),
    ...(dice.chance(0.05) && { matchLabelKeys: [names.tier] }),
  }
}

function someSpreads(context: PodContext): readonly TopologySpreadConstraint[] {
  const { dice, app, names } = context
  const one = (topologyKey: string): TopologySpreadConstraint => {
    const whenUnsatisfiable = dice.oneOf(['DoNotSchedule', 'DoNotSchedule', 'ScheduleAnyway'] as const)
    return {
      maxSkew: dice.oneOf([1, 1, 2]),
      topologyKey,
      whenUnsatisfiable,
      labelSelector: { matchLabels: { app } },
      ...(whenUnsatisfiable === 'DoNotSchedule' && dice.chance(0.15) && { minDomains: dice.between(1, 3) }),
      ...(dice.chance(0.2) && { nodeAffinityPolicy: dice.oneOf(['Honor', 'Ignore']) }),
      ...(dice.chance(0.2) && { nodeTaintsPolicy: dice.oneOf(['Honor', 'Ignore']) }),
      ...(dice.chance(0.1) && { matchLabelKeys: [names.tier] }),
    }
  }
  const first = aTopologyKey(context)
  return dice.chance(0.2) && first !== labels.zone ? [one(first), one(labels.zone)] : [one(first)]
}

function someTolerations({ dice, names }: PodContext): readonly Toleration[] {
  return dice.oneOf<readonly Toleration[]>([
    [{ operator: 'Exists' }],
    [{ key: names.taint, operator: 'Exists' }],
    [{ key: names.taint, operator: 'Equal', value: 'red', effect: 'NoSchedule' }],
    [{ key: names.taint, value: 'blue' }],
    [{ key: names.taint, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 3600 }],
  ])
}

function someVolumes({ dice, claims, storageClasses }: PodContext): readonly object[] {
  const claim = dice.pick(claims)
  const storageClassName = dice.pick(storageClasses)
  const template = {
    spec: {
      accessModes: [dice.oneOf(['ReadWriteOnce', 'ReadWriteOncePod'])],
      resources: { requests: { storage: '1Gi' } },
      ...(storageClassName !== undefined && { storageClassName }),
    },
  }
  const count = dice.oneOf([1, 1, 2, 4])
  const ephemeral = Array.from({ length: count }, (_, index) => ({
    name: `scratch-${index}`,
    ephemeral: { volumeClaimTemplate: template },
  }))
  if (claim === undefined) return ephemeral
  return dice.oneOf<readonly object[]>([
    [{ name: 'data', persistentVolumeClaim: { claimName: claim } }],
    [{ name: 'data', persistentVolumeClaim: { claimName: claim } }],
    [{ name: 'data', persistentVolumeClaim: { claimName: 'no-such-claim' } }],
    [{ name: 'tmp', emptyDir: {} }],
    ephemeral,
  ])
}
