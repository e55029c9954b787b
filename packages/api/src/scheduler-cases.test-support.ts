/**
 * What kube-scheduler 1.36 decides about taints, labels and zones of volumes. Everything in this repository that decides
 * about them is run against these cases.
 */
import type { LabelSelector, NodeSelectorTerm, Taint, Toleration } from './objects.ts'

type Labels = Readonly<Record<string, string>>

const taint = (value?: string, effect: Taint['effect'] = 'NoSchedule'): Taint => ({
  key: 'example.com/a',
  effect,
  ...(value !== undefined && { value }),
})
const toleration = (rest: object): Toleration => ({ key: 'example.com/a', ...rest })

export const tolerationCases: readonly {
  readonly toleration: Toleration
  readonly taint: Taint
  readonly isTolerated: boolean
}[] = [
  { toleration: toleration({ operator: 'Exists' }), taint: taint('x'), isTolerated: true },
  { toleration: toleration({ value: 'x' }), taint: taint('x'), isTolerated: true },
  { toleration: toleration({ operator: '', value: 'x' }), taint: taint('x'), isTolerated: true },
  { toleration: toleration({ operator: 'Equal', value: 'x' }), taint: taint('y'), isTolerated: false },
  { toleration: toleration({ operator: 'Equal' }), taint: taint(), isTolerated: true },
  {
    toleration: toleration({ operator: 'Exists', effect: 'NoExecute' }),
    taint: taint('x'),
    isTolerated: false,
  },
  { toleration: toleration({ operator: 'Exists', effect: '' }), taint: taint('x'), isTolerated: true },
  { toleration: { operator: 'Exists' }, taint: taint('x'), isTolerated: true },
  { toleration: { key: '', operator: 'Exists' }, taint: taint('x'), isTolerated: true },
  { toleration: { key: 'other', operator: 'Exists' }, taint: taint('x'), isTolerated: false },
  { toleration: toleration({ operator: 'Gt', value: '5' }), taint: taint('6'), isTolerated: true },
  { toleration: toleration({ operator: 'Gt', value: '5' }), taint: taint('5'), isTolerated: false },
  { toleration: toleration({ operator: 'Gt', value: '5' }), taint: taint('4'), isTolerated: false },
  { toleration: toleration({ operator: 'Lt', value: '5' }), taint: taint('4'), isTolerated: true },
  { toleration: toleration({ operator: 'Lt', value: '5' }), taint: taint('5'), isTolerated: false },
  { toleration: toleration({ operator: 'Lt', value: '5' }), taint: taint('x'), isTolerated: false },
  { toleration: toleration({ operator: 'Gt', value: '05' }), taint: taint('6'), isTolerated: false },
]

const term = (operator: string, ...values: readonly string[]) =>
  ({ matchExpressions: [{ key: 'example.com/size', operator, values }] }) as NodeSelectorTerm

/** Each about a node named `node-1`. */
export const nodeTermCases: readonly {
  readonly term: NodeSelectorTerm
  readonly labels: Labels
  readonly isMet: boolean
}[] = [
  { term: {}, labels: {}, isMet: false },
  { term: { matchExpressions: [] }, labels: {}, isMet: false },
  ...(
    [
      ['In', ['5'], '5', true],
      ['In', ['5'], undefined, false],
      ['NotIn', ['5'], '5', false],
      ['NotIn', ['5'], undefined, true],
      ['Exists', [], '', true],
      ['DoesNotExist', [], '', false],
      ['DoesNotExist', [], undefined, true],
      ['Gt', ['4'], '5', true],
      ['Gt', ['5'], '5', false],
      ['Gt', ['4'], '5abc', false],
      ['Gt', ['4'], '', false],
      ['Gt', ['4'], undefined, false],
      ['Gt', ['4'], '9223372036854775808', false],
      ['Lt', ['4'], '3', true],
      ['Lt', ['4'], '3.5', false],
      ['Lt', ['4'], '03', true],
    ] as const
  ).map(([operator, values, value, isMet]) => ({
    term: term(operator, ...values),
    labels: value === undefined ? {} : { 'example.com/size': value },
    isMet,
  })),
]

/** Kept apart, as a new node has no name yet. */
export const nodeFieldCases: typeof nodeTermCases = (
  [
    ['In', 'node-1', true],
    ['In', 'node-2', false],
    ['NotIn', 'node-1', false],
    ['NotIn', 'node-2', true],
  ] as const
).map(([operator, name, isMet]) => ({
  term: { matchFields: [{ key: 'metadata.name', operator, values: [name] }] },
  labels: {},
  isMet,
}))

export const selectorCases: readonly {
  readonly selector: LabelSelector | undefined
  readonly labels: Labels
  readonly isMet: boolean
}[] = [
  { selector: undefined, labels: { a: '1' }, isMet: false },
  { selector: {}, labels: {}, isMet: true },
  { selector: { matchLabels: { a: '1' } }, labels: { a: '1', b: '2' }, isMet: true },
  { selector: { matchLabels: { a: '1' } }, labels: { a: '2' }, isMet: false },
  { selector: { matchLabels: { constructor: '1' } }, labels: {}, isMet: false },
  ...(
    [
      ['In', ['1', '2'], '2', true],
      ['In', ['1', '2'], undefined, false],
      ['NotIn', ['1', '2'], '2', false],
      ['NotIn', ['1', '2'], undefined, true],
      ['Exists', undefined, '', true],
      ['DoesNotExist', undefined, '', false],
    ] as const
  ).map(([operator, values, value, isMet]) => ({
    selector: { matchExpressions: [{ key: 'a', operator, ...(values && { values }) }] },
    labels: value === undefined ? {} : { a: value },
    isMet,
  })),
]

const zone = 'topology.kubernetes.io/zone'
const region = 'topology.kubernetes.io/region'
const betaZone = 'failure-domain.beta.kubernetes.io/zone'

/** Whether a node may use a volume that has these labels and no node affinity. */
export const volumeZoneCases: readonly {
  readonly volume: Labels
  readonly node: Labels
  readonly isReachable: boolean
}[] = [
  { volume: {}, node: { [zone]: 'a' }, isReachable: true },
  { volume: { [zone]: 'a' }, node: { [zone]: 'a' }, isReachable: true },
  { volume: { [zone]: 'a' }, node: { [zone]: 'b' }, isReachable: false },
  { volume: { [zone]: 'a__b' }, node: { [zone]: 'b' }, isReachable: true },
  { volume: { [betaZone]: 'a' }, node: { [zone]: 'a' }, isReachable: true },
  { volume: { [betaZone]: 'a' }, node: { [zone]: 'b' }, isReachable: false },
  { volume: { [betaZone]: 'a' }, node: { [betaZone]: 'a', [zone]: 'b' }, isReachable: true },
  { volume: { [zone]: 'a' }, node: {}, isReachable: true },
  { volume: { [betaZone]: 'a' }, node: { 'example.com/a': 'b' }, isReachable: true },
  { volume: { [zone]: 'a' }, node: { [region]: 'r' }, isReachable: false },
  { volume: { [zone]: 'a' }, node: { [betaZone]: 'a' }, isReachable: false },
]
