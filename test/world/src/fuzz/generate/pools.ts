/** Random NodePools and node classes. */
import { type KubeObject, labels, type Requirement } from '@tenon/api'
import { cleverFlavors } from '../clever-flavors.ts'
import type { FuzzProvider } from '../case.ts'
import type { Dice } from '../../simulation/workload/workload-context.ts'
import { zones } from './catalogue.ts'
import type { Names } from './names.ts'
import { values } from './pod-spec.ts'

const is = (key: string, ...listed: readonly string[]): Requirement => ({
  key,
  operator: 'In',
  values: listed,
})

/** Pools of one provider, preceded by their node classes. */
export function somePools(
  dice: Dice,
  names: Names,
  provider: FuzzProvider,
  most: number = 3,
): readonly KubeObject[] {
  const classes = classesOf[provider](dice, names)
  const count = dice.oneOf([1, 1, 2, most])
  const pools = Array.from({ length: count }, (_, index) =>
    aPool(dice, names, provider, `pool-${index}`, dice.pick(classes)?.metadata.name ?? 'default'),
  )
  return [...classes, ...pools]
}

type DrawnClasses = (dice: Dice, names: Names) => readonly KubeObject[]

const classesOf: Readonly<Record<FuzzProvider, DrawnClasses>> = {
  kwok: () => [kwokClass],
  exoscale: exoscaleClasses,
  'clever-cloud': cleverClasses,
}

const classRefs = {
  kwok: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass' },
  exoscale: { group: 'karpenter.exoscale.com', kind: 'ExoscaleNodeClass' },
  'clever-cloud': { group: 'karpenter.clever-cloud.com', kind: 'CleverNodeClass' },
} as const

const kwokClass: KubeObject = {
  apiVersion: 'karpenter.kwok.sh/v1alpha1',
  kind: 'KWOKNodeClass',
  metadata: { name: 'default' },
}

function exoscaleClasses(dice: Dice, names: Names): readonly KubeObject[] {
  const one = (name: string, more: object): KubeObject => {
    const object = {
      apiVersion: 'karpenter.exoscale.com/v1',
      kind: 'ExoscaleNodeClass',
      metadata: { name },
      spec: { imageTemplateSelector: {}, diskSize: 50, ...more },
    }
    return object
  }
  const reserved = {
    kubelet: { kubeReserved: { cpu: '400m', memory: '600Mi' }, systemReserved: { memory: '200Mi' } },
  }
  return [one('default', {}), ...(dice.chance(0.2) ? [one(names.tier.toLowerCase(), reserved)] : [])]
}

function cleverClasses(dice: Dice): readonly KubeObject[] {
  const one = (name: string, spec: object): KubeObject => {
    const object = {
      apiVersion: 'karpenter.clever-cloud.com/v1alpha1',
      kind: 'CleverNodeClass',
      metadata: { name },
      spec,
    }
    return object
  }
  return [
    one('default', dice.oneOf([{}, { labels: {} }])),
    ...(dice.chance(0.2) ? [one('labelled', { labels: { 'example.com/cost-center': 'fuzz' } })] : []),
  ]
}

function aPool(
  dice: Dice,
  names: Names,
  provider: FuzzProvider,
  name: string,
  className: string,
): KubeObject {
  const nodeClassRef = { ...classRefs[provider], name: className }
  const isTaken = dice.chance(0.2)
  const spec = {
    ...(dice.chance(0.4) && { weight: dice.between(1, 100) }),
    ...(dice.chance(0.15) && { limits: someLimits(dice) }),
    template: {
      metadata: { labels: templateLabels(dice, names) },
      spec: {
        nodeClassRef,
        requirements: requirementsOf[provider](dice, names),
        ...(isTaken && {
          taints: [{ key: names.taint, value: dice.oneOf(values), effect: dice.oneOf(effects) }],
        }),
        ...(dice.chance(0.1) && { startupTaints: [startupTaint] }),
        expireAfter: dice.oneOf(['720h', 'Never', '24h']),
        ...(dice.chance(0.1) && { terminationGracePeriod: '10m' }),
      },
    },
    disruption: {
      consolidationPolicy: dice.oneOf(['WhenEmptyOrUnderutilized', 'WhenEmptyOrUnderutilized', 'WhenEmpty']),
      consolidateAfter: dice.oneOf(['0s', '30s', '1m', '5m', 'Never']),
      ...(dice.chance(0.4) && { budgets: [{ nodes: dice.oneOf(['10%', '1', '100%', '0']) }] }),
    },
  }
  const object = { apiVersion: 'karpenter.sh/v1', kind: 'NodePool', metadata: { name }, spec }
  return object
}

const effects = ['NoSchedule', 'NoSchedule', 'NoExecute', 'PreferNoSchedule'] as const

/** An agent that the case plays removes it. */
export const startupTaint = { key: 'startup.example.com/agent', effect: 'NoSchedule' } as const

function templateLabels(dice: Dice, names: Names): Readonly<Record<string, string>> {
  return {
    ...(dice.chance(0.3) && { [names.team]: dice.oneOf(values) }),
    ...(dice.chance(0.15) && { [names.version]: dice.oneOf(['2', '5']) }),
  }
}

function someLimits(dice: Dice): object {
  return dice.oneOf<object>([
    { cpu: dice.oneOf(['0', '2', '20', '100']) },
    { memory: dice.oneOf(['8Gi', '200Gi']) },
    { nodes: dice.oneOf(['1', '3']) },
    { cpu: '50', memory: '100Gi', nodes: '10' },
  ])
}

function customRequirements(dice: Dice, names: Names): readonly Requirement[] {
  const one = dice.oneOf<() => readonly Requirement[]>([
    () => [],
    () => [],
    () => [is(names.tier, ...values)],
    () => [is(names.tier, dice.oneOf(values))],
    () => [{ key: names.tier, operator: 'Exists' }],
    () => [is(names.team, dice.oneOf(values))],
    () => [{ key: names.team, operator: 'NotIn', values: ['red'] }],
    () => [{ key: names.rack, operator: dice.oneOf(['Exists', 'DoesNotExist']) }],
    () => [is(names.rack, 'r1', 'r2', 'r3')],
    () => [{ key: names.version, operator: dice.oneOf(['Gt', 'Lt']), values: ['4'] }],
  ])
  return one()
}

function kwokRequirements(dice: Dice, names: Names): readonly Requirement[] {
  return [
    is(labels.os, 'linux'),
    ...(dice.chance(0.7)
      ? [is(labels.capacityType, ...dice.oneOf([['on-demand'], ['on-demand', 'spot'], ['spot']]))]
      : []),
    ...(dice.chance(0.3) ? [is(labels.zone, ...zones.filter(() => dice.chance(0.6)), 'zone-b')] : []),
    ...(dice.chance(0.7) ? [is(labels.arch, 'amd64')] : []),
    ...(dice.chance(0.06)
      ? [{ key: labels.instanceType, operator: 'Exists' as const, minValues: dice.between(1, 3) }]
      : []),
    ...customRequirements(dice, names),
  ]
}

const requirementsOf: Readonly<Record<FuzzProvider, (dice: Dice, names: Names) => readonly Requirement[]>> = {
  kwok: kwokRequirements,
  exoscale: exoscaleRequirements,
  'clever-cloud': cleverRequirements,
}

function cleverRequirements(dice: Dice, names: Names): readonly Requirement[] {
  const some = (): readonly string[] => [
    ...new Set(Array.from({ length: dice.between(1, 4) }, () => dice.oneOf(cleverFlavors).name)),
  ]
  const of = dice.oneOf<() => readonly Requirement[]>([
    () => [],
    () => [is(labels.instanceType, ...some())],
    () => [is('clever-cloud.com/flavor', ...some())],
    () => [{ key: 'clever-cloud.com/flavor', operator: 'NotIn', values: some().slice(0, 2) }],
    () => [{ key: 'karpenter.clever-cloud.com/instance-cpu', operator: 'Gt', values: ['4'] }],
    () => [is('clever-cloud.com/cluster-node-role', 'worker'), is(labels.region, 'par')],
  ])
  return [...of(), ...customRequirements(dice, names)]
}

const families = ['standard', 'cpu', 'memory', 'storage', 'gpua30'] as const
const sizes = ['micro', 'tiny', 'small', 'medium', 'large', 'extra-large', 'huge', 'mega'] as const

function exoscaleRequirements(dice: Dice, names: Names): readonly Requirement[] {
  const family = (): readonly Requirement[] => [
    is('exoscale.com/instance-family', ...families.filter((_, at) => at === 0 || dice.chance(0.5))),
    ...(dice.chance(0.5)
      ? [{ key: 'exoscale.com/instance-size', operator: 'NotIn' as const, values: ['micro', 'tiny'] }]
      : []),
  ]
  const listed = (): readonly Requirement[] => [
    is(
      labels.instanceType,
      ...new Set(Array.from({ length: dice.between(1, 4) }, () => `standard.${dice.oneOf(sizes)}`)),
    ),
  ]
  return [...dice.oneOf([family, family, listed, () => []])(), ...customRequirements(dice, names)]
}
