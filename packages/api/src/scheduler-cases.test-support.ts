/**
 * What kube-scheduler 1.36 decides about taints, labels, zones of volumes, resizes in place and declared features. Everything in this repository that decides
 * about them is run against these cases.
 */
import type { LabelSelector, NodeSelectorTerm, PodSpec, PodStatus, Taint, Toleration } from './objects.ts'
import type { ResizedRequests } from './pod-requests.ts'

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

const cpu = (amount: string) => ({ requests: { cpu: amount } })
const containers = (amounts: Readonly<Record<string, string>>) =>
  Object.entries(amounts).map(([name, amount]) => ({ name, resources: cpu(amount) }))
/** What containers have and were promised. */
const granted = (amounts: Readonly<Record<string, string>>) =>
  Object.entries(amounts).map(([name, amount]) => ({
    name,
    resources: cpu(amount),
    allocatedResources: { cpu: amount },
  }))
const pending = (reason: 'Deferred' | 'Infeasible') => ({
  conditions: [{ type: 'PodResizePending', status: 'True', reason }],
})
const podLevel = (amount: string) => ({ resources: cpu(amount), allocatedResources: { cpu: amount } })

/** What pods take of a node's CPU, in thousandths, while they are resized in place: up to 1.36, and from 1.37 on. */
export const resizeCases: readonly {
  readonly about: string
  readonly spec: Pick<PodSpec, 'containers' | 'initContainers' | 'resources'>
  readonly status: PodStatus
  readonly cpu: Readonly<Record<ResizedRequests, number>>
}[] = [
  {
    about: 'VER-38 the pod level replaces the containers',
    spec: { containers: containers({ a: '1' }), resources: cpu('2') },
    status: {},
    cpu: { sumOfMaxima: 2000, maximumOfSums: 2000 },
  },
  {
    about: 'VER-39 a resize of the pod level counts at once',
    spec: { containers: containers({ a: '500m' }), resources: cpu('2') },
    status: { ...podLevel('1'), ...pending('Deferred') },
    cpu: { sumOfMaxima: 2000, maximumOfSums: 2000 },
  },
  {
    about: 'a pod level that shrinks counts until it has shrunk',
    spec: { containers: containers({ a: '500m' }), resources: cpu('1') },
    status: podLevel('3'),
    cpu: { sumOfMaxima: 3000, maximumOfSums: 3000 },
  },
  {
    about: 'VER-39 a resize of the pod level that is refused for good does not count',
    spec: { containers: containers({ a: '500m' }), resources: cpu('2') },
    status: { ...podLevel('1'), ...pending('Infeasible') },
    cpu: { sumOfMaxima: 1000, maximumOfSums: 1000 },
  },
  {
    about: 'VER-40 one container shrinks while another grows',
    spec: { containers: containers({ a: '1', b: '2' }) },
    status: { containerStatuses: granted({ a: '2', b: '1' }) },
    cpu: { sumOfMaxima: 4000, maximumOfSums: 3000 },
  },
  {
    about: 'VER-40 what is promised counts where nothing is said of what a container has',
    spec: { containers: containers({ a: '500m', b: '500m' }) },
    status: {
      containerStatuses: [
        { name: 'a', resources: cpu('1') },
        { name: 'b', allocatedResources: { cpu: '1' } },
      ],
    },
    cpu: { sumOfMaxima: 1500, maximumOfSums: 2000 },
  },
  {
    about: 'VER-40 a container of which the kubelet says nothing does not count while a resize is refused',
    spec: { containers: containers({ a: '1' }), initContainers: containers({ init: '3' }) },
    status: { containerStatuses: [{ name: 'a', resources: cpu('100m') }], ...pending('Infeasible') },
    cpu: { sumOfMaxima: 3000, maximumOfSums: 100 },
  },
  {
    about: 'what a refused resize asks for counts in neither sum',
    spec: { containers: containers({ a: '1', b: '9' }) },
    status: { containerStatuses: granted({ a: '2', b: '1' }), ...pending('Infeasible') },
    cpu: { sumOfMaxima: 3000, maximumOfSums: 3000 },
  },
  {
    about: 'an ordinary init container counts with what it has, if sums are compared',
    spec: { containers: containers({ a: '1' }), initContainers: containers({ init: '2' }) },
    status: { initContainerStatuses: granted({ init: '4' }) },
    cpu: { sumOfMaxima: 2000, maximumOfSums: 4000 },
  },
  {
    about: 'what the kubelet reports of a pod replaces what its containers have, if sums are compared',
    spec: { containers: containers({ a: '1', b: '1' }) },
    status: { containerStatuses: granted({ a: '4', b: '1' }), ...podLevel('3') },
    cpu: { sumOfMaxima: 5000, maximumOfSums: 3000 },
  },
]

/** Whether a node with these declared features may take the pod. */
export const featureCases: readonly {
  readonly spec: PodSpec
  readonly declared: readonly string[] | undefined
  readonly isMet: boolean
}[] = (
  [
    [{ containers: containers({ a: '1' }) }, undefined, true],
    [{ containers: [{ name: 'a', restartPolicyRules: [{ action: 'Restart' }] }] }, undefined, true],
    [restartingAll(), undefined, false],
    [restartingAll(), ['ExtendWebSocketsToKubelet'], false],
    [restartingAll(), ['ExtendWebSocketsToKubelet', 'RestartAllContainersOnContainerExits'], true],
    [{ containers: [{ name: 'b' }], initContainers: restartingAll().containers }, [], false],
    [{ containers: [{ name: 'a' }], hostNetwork: true, hostUsers: true }, [], true],
    [{ containers: [{ name: 'a' }], hostNetwork: true, hostUsers: false }, [], false],
    [{ containers: [{ name: 'a' }], hostUsers: false }, [], true],
    [
      { containers: [{ name: 'a' }], hostNetwork: true, hostUsers: false },
      ['UserNamespacesHostNetworkSupport'],
      true,
    ],
  ] as const
).map(([spec, declared, isMet]) => ({ spec, declared, isMet }))

function restartingAll() {
  return { containers: [{ name: 'a', restartPolicyRules: [{ action: 'RestartAllContainers' }] }] }
}

/**
 * A pod that requests an extended resource, on a node whose devices are of a DeviceClass with the name of the resource
 * (devices.md 3.22).
 */
export const extendedResourceCases: readonly {
  readonly title: string
  /** Of the node; undefined: it does not report the resource. */
  readonly allocatable: number | undefined
  /** By a pod that runs on the node. */
  readonly used: number
  /** Free devices of the node. */
  readonly devices: number
  readonly requested: number
  readonly fits: boolean
}[] = [
  { title: 'plugin with room', allocatable: 2, used: 1, devices: 0, requested: 1, fits: true },
  { title: 'plugin in use, free devices', allocatable: 2, used: 2, devices: 2, requested: 1, fits: false },
  { title: 'plugin without devices', allocatable: 0, used: 0, devices: 2, requested: 1, fits: true },
  { title: 'nothing reported', allocatable: undefined, used: 0, devices: 2, requested: 2, fits: true },
  { title: 'too few devices', allocatable: undefined, used: 0, devices: 2, requested: 3, fits: false },
  { title: 'no devices', allocatable: undefined, used: 0, devices: 0, requested: 1, fits: false },
]
