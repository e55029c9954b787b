/** Random PodGroups, Workloads and pods of groups (gangs.md 5.2). */
import { type Kind, record, spec } from './kind.ts'
import { type Choices, type Make, type OddDraw, odd } from './odd-draw.ts'

const long = (length: number) => 'a'.repeat(length)
/** Names of objects. */
const names = ['train', 'a.b-c', long(253), odd(''), odd('Bad_Name'), odd('-a'), odd(long(254)), odd('a/b')]
/** Names that are a single DNS label. */
const short = ['workers', long(63), odd(''), odd('a.b'), odd('A'), odd(long(64))]

const policy: Make = (draw) =>
  draw.value([
    { basic: {} },
    (one: OddDraw) => ({
      gang: one.record({
        minCount: [1, 4, 2_147_483_647, odd(0), odd(-1), odd('4'), odd(1.5), odd(2 ** 31)],
      }),
    }),
    odd({}),
    odd({ basic: {}, gang: { minCount: 2 } }),
    odd({ basic: null, gang: { minCount: 2 } }),
    odd({ gang: null }),
    odd({ everything: {} }),
  ])

const topology: Make = (draw) =>
  draw.value([
    [{ key: 'topology.kubernetes.io/zone' }],
    [],
    [{ key: 'rack' }],
    odd([{ key: '' }]),
    odd([{}]),
    odd([{ key: 'a b' }]),
    odd([{ key: 'a/b/c' }]),
    odd([{ key: `${long(254)}/a` }]),
    odd([{ key: long(64) }]),
    odd([{ key: 'a' }, { key: 'b' }]),
    odd([{ key: 'a' }, { key: 'a' }]),
    odd([null]),
  ])

const claims: Make = (draw) =>
  draw.list(0, 2, (one, index) =>
    one.value([
      { name: `claim-${index}`, resourceClaimName: 'shared' },
      { name: `claim-${index}`, resourceClaimTemplateName: 'each' },
      odd({ name: `claim-${index}` }),
      odd({ name: `claim-${index}`, resourceClaimName: 'a', resourceClaimTemplateName: 'b' }),
      odd({ name: 'claim-0', resourceClaimName: 'shared' }),
      odd({ resourceClaimName: 'shared' }),
      odd({ name: 'A', resourceClaimName: 'shared' }),
      odd({ name: '', resourceClaimName: 'shared' }),
      odd({ name: 'b', resourceClaimName: '' }),
      odd({ name: 'b', resourceClaimName: 'Bad_Name' }),
      odd({ name: 'b', resourceClaimTemplateName: long(254) }),
    ]),
  )

const manyClaims = (count: number) =>
  Array.from({ length: count }, (_, at) => ({ name: `c${at}`, resourceClaimName: 'shared' }))

/** What a group and its template share. */
const common: readonly [Readonly<Record<string, Choices>>, Readonly<Record<string, Choices>>] = [
  { schedulingPolicy: [policy] },
  {
    schedulingConstraints: [record({}, { topology: [topology] }), {}],
    resourceClaims: [claims, manyClaims(4), odd(manyClaims(5))],
    disruptionMode: ['Pod', 'PodGroup', odd(''), odd('Some')],
    priorityClassName: [
      'system-cluster-critical',
      odd('nobody-has-it'),
      odd('Bad_Name'),
      odd(''),
      undefined,
      undefined,
    ],
    priority: [odd(0), odd(5), odd(1_000_000_000), odd(1_000_000_001), odd(-1), undefined],
  },
]

const reference: Make = (draw) =>
  draw.value([
    undefined,
    undefined,
    odd({}),
    odd({ workload: {} }),
    odd({ workload: { workloadName: 'nobody-has-it', podGroupTemplateName: 'workers' } }),
    odd({ workload: { workloadName: 'Bad_Name', podGroupTemplateName: 'workers' } }),
    odd({ workload: { workloadName: 'train', podGroupTemplateName: 'Bad.Name' } }),
    odd({ workload: { workloadName: 'train' } }),
  ])

const template =
  (index: number): Make =>
  (draw) =>
    draw.record({ name: [`t${index}`, odd('t0'), ...short.slice(2)], ...common[0] }, common[1])

/** The kinds of `scheduling.k8s.io/v1alpha2`, and pods that belong to groups. */
export const gangKinds: readonly Kind[] = [
  {
    apiVersion: 'scheduling.k8s.io/v1alpha2',
    kind: 'PodGroup',
    resource: 'podgroups',
    isNamespaced: true,
    names,
    fields: spec(common[0], { ...common[1], podGroupTemplateRef: [reference] }),
  },
  {
    apiVersion: 'scheduling.k8s.io/v1alpha2',
    kind: 'Workload',
    resource: 'workloads',
    isNamespaced: true,
    names,
    fields: spec(
      {
        podGroupTemplates: [
          (draw: OddDraw) => draw.list(1, 2, (one, index) => one.value([template(index)])),
          odd([]),
          odd(Array.from({ length: 9 }, (_, at) => ({ name: `t${at}`, schedulingPolicy: { basic: {} } }))),
        ],
      },
      {
        controllerRef: [
          { apiGroup: 'batch', kind: 'Job', name: 'train' },
          { kind: 'Pod', name: 'a' },
          odd({ apiGroup: 'Bad_Group', kind: 'Job', name: 'train' }),
          odd({ apiGroup: 'batch', kind: '', name: 'train' }),
          odd({ apiGroup: 'batch', kind: 'a/b', name: 'train' }),
          odd({ apiGroup: 'batch', kind: 'Job', name: 'a/b' }),
          odd({ kind: 'Job' }),
        ],
      },
    ),
  },
  {
    apiVersion: 'v1',
    kind: 'Pod',
    resource: 'pods',
    isNamespaced: true,
    fields: record({
      spec: [
        record({
          containers: [[{ name: 'app', image: 'registry.k8s.io/pause' }]],
          schedulingGroup: [
            (draw: OddDraw) => draw.record({ podGroupName: names }),
            undefined,
            odd({}),
            odd({ podGroupName: null }),
          ],
        }),
      ],
    }),
  },
]
