/** Pods with scheduling constraints. */
import { kinds } from '@tenon/api'
import { namespace, type PodShape, workload, workloadTypes } from './objects.ts'
import type { WorkloadContext } from './workload-context.ts'

const { deployment, priorityClass } = workloadTypes

/** Budgets for applications of the kind `deployments` and for some of their own. */
export function disruptionBudgets(context: WorkloadContext): void {
  const { dice, nodes } = context
  const budget = (name: string, spec: object): void => {
    const selector = { matchLabels: { app: name } }
    const object = {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name, namespace },
      spec: { selector, ...spec },
    }
    context.create(kinds.podDisruptionBudget, object)
  }
  for (let i = 0; i < Math.min(10, nodes / 4); i++) {
    if (dice.chance(0.5))
      budget(
        `web-${i}`,
        dice.oneOf<object>([{ maxUnavailable: 1 }, { minAvailable: '50%' }, { maxUnavailable: '30%' }]),
      )
  }
  const replicas = dice.between(1, 3)
  const shape: PodShape = { cpu: 300, memory: 300 }
  context.create(deployment, workload(deployment, 'guarded', shape, { replicas }))
  budget('guarded', { minAvailable: replicas })
  // Now and then a budget is relaxed, so that its nodes can be drained.
  context.every(15, 45, () => {
    const minAvailable = dice.oneOf([replicas, 0])
    context.patch(kinds.podDisruptionBudget, 'guarded', { spec: { minAvailable } }, namespace)
  })
}

export function priorities(context: WorkloadContext): void {
  const { dice } = context
  for (const [name, value] of [
    ['world-high', 100_000],
    ['world-low', -10],
  ] as const) {
    const object = { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata: { name }, value }
    context.create(priorityClass, object)
  }
  const filler: PodShape = { cpu: 500, memory: 500, spec: { priorityClassName: 'world-low' } }
  context.create(
    deployment,
    workload(deployment, 'filler', filler, { replicas: Math.ceil(context.nodes / 2) }),
  )
  const urgent: PodShape = { cpu: 1000, memory: 1000, spec: { priorityClassName: 'world-high' } }
  context.create(deployment, workload(deployment, 'urgent', urgent, { replicas: 1 }))
  context.every(15, 40, () => {
    const replicas = dice.between(0, Math.ceil(context.nodes / 3))
    context.patch(deployment, 'urgent', { spec: { replicas } }, namespace)
  })
}

const ofApp = (name: string): object => ({ labelSelector: { matchLabels: { app: name } } })

export function affinities(context: WorkloadContext): void {
  const { dice, nodes } = context
  const { choosyTypes } = context.cloud.wares
  const apart = {
    podAntiAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [
        { ...ofApp('apart'), topologyKey: 'kubernetes.io/hostname' },
      ],
    },
  } as PodShape['spec'] & object
  const near = {
    podAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [
        { ...ofApp('apart'), topologyKey: 'topology.kubernetes.io/zone' },
      ],
    },
  }
  const choosy = {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [
          {
            matchExpressions: [
              { key: 'node.kubernetes.io/instance-type', operator: 'In' as const, values: choosyTypes },
            ],
          },
        ],
      },
    },
  }
  const apartReplicas = Math.max(2, Math.min(20, Math.round(nodes / 4)))
  const small = { cpu: 200, memory: 256 }
  const add = (name: string, affinity: object, replicas: number): void => {
    const shape: PodShape = { ...small, spec: { affinity } }
    context.create(deployment, workload(deployment, name, shape, { replicas }))
  }
  add('apart', apart, apartReplicas)
  add('near', near, 2)
  add('choosy', choosy, 3)
  context.every(15, 40, () => {
    context.patch(deployment, 'apart', { spec: { replicas: dice.between(1, apartReplicas) } }, namespace)
    context.patch(deployment, 'choosy', { spec: { replicas: dice.between(0, 6) } }, namespace)
  })
}

export function spreads(context: WorkloadContext): void {
  const { dice, nodes } = context
  const topologySpreadConstraints = [
    {
      maxSkew: 1,
      topologyKey: 'kubernetes.io/hostname',
      whenUnsatisfiable: 'DoNotSchedule' as const,
      labelSelector: { matchLabels: { app: 'spread' } },
    },
  ]
  const shape: PodShape = { cpu: 300, memory: 400, spec: { topologySpreadConstraints } }
  const most = Math.max(3, Math.min(30, Math.round(nodes / 3)))
  context.create(deployment, workload(deployment, 'spread', shape, { replicas: Math.ceil(most / 2) }))
  context.every(15, 40, () => {
    context.patch(deployment, 'spread', { spec: { replicas: dice.between(1, most) } }, namespace)
  })
}

const doNotDisruptKey = 'karpenter.sh/do-not-disrupt'

/** Pods with do-not-disrupt; some only for a time. */
export function doNotDisrupt(context: WorkloadContext): void {
  const { dice } = context
  const forever: PodShape = { cpu: 500, memory: 500, annotations: { [doNotDisruptKey]: 'true' } }
  context.create(deployment, workload(deployment, 'untouchable', forever, { replicas: dice.between(1, 4) }))
  const timed: PodShape = { cpu: 300, memory: 300, annotations: { [doNotDisruptKey]: '10m' } }
  context.create(deployment, workload(deployment, 'touchy', timed, { replicas: dice.between(1, 4) }))
  context.every(20, 50, () => {
    context.patch(deployment, 'untouchable', { spec: { replicas: dice.between(0, 4) } }, namespace)
  })
}
