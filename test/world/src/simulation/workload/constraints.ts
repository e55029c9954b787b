/** Pods with scheduling constraints. */
import { kinds } from '@tenon/api'
import { namespace, type PodShape, workload, workloadTypes } from './objects.ts'
import type { Hands } from './workload-context.ts'

const { deployment, priorityClass } = workloadTypes

/** Budgets over applications of kind `deployments` and over some of their own. */
export function disruptionBudgets(hands: Hands): void {
  const { dice, nodes } = hands
  const budget = (name: string, spec: object): void => {
    const selector = { matchLabels: { app: name } }
    const object = {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name, namespace },
      spec: { selector, ...spec },
    }
    hands.create(kinds.podDisruptionBudget, object)
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
  hands.create(deployment, workload(deployment, 'guarded', shape, { replicas }))
  budget('guarded', { minAvailable: replicas })
  // Now and then somebody gives way, so that nodes under it can drain.
  hands.every(15, 45, () => {
    const minAvailable = dice.oneOf([replicas, 0])
    hands.patch(kinds.podDisruptionBudget, 'guarded', { spec: { minAvailable } }, namespace)
  })
}

export function priorities(hands: Hands): void {
  const { dice } = hands
  for (const [name, value] of [
    ['world-high', 100_000],
    ['world-low', -10],
  ] as const) {
    const object = { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata: { name }, value }
    hands.create(priorityClass, object)
  }
  const filler: PodShape = { cpu: 500, memory: 500, spec: { priorityClassName: 'world-low' } }
  hands.create(deployment, workload(deployment, 'filler', filler, { replicas: Math.ceil(hands.nodes / 2) }))
  const urgent: PodShape = { cpu: 1000, memory: 1000, spec: { priorityClassName: 'world-high' } }
  hands.create(deployment, workload(deployment, 'urgent', urgent, { replicas: 1 }))
  hands.every(15, 40, () => {
    const replicas = dice.between(0, Math.ceil(hands.nodes / 3))
    hands.patch(deployment, 'urgent', { spec: { replicas } }, namespace)
  })
}

const ofApp = (name: string): object => ({ labelSelector: { matchLabels: { app: name } } })

export function affinities(hands: Hands): void {
  const { dice, nodes } = hands
  const { choosyTypes } = hands.cloud.wares
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
    hands.create(deployment, workload(deployment, name, shape, { replicas }))
  }
  add('apart', apart, apartReplicas)
  add('near', near, 2)
  add('choosy', choosy, 3)
  hands.every(15, 40, () => {
    hands.patch(deployment, 'apart', { spec: { replicas: dice.between(1, apartReplicas) } }, namespace)
    hands.patch(deployment, 'choosy', { spec: { replicas: dice.between(0, 6) } }, namespace)
  })
}

export function spreads(hands: Hands): void {
  const { dice, nodes } = hands
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
  hands.create(deployment, workload(deployment, 'spread', shape, { replicas: Math.ceil(most / 2) }))
  hands.every(15, 40, () => {
    hands.patch(deployment, 'spread', { spec: { replicas: dice.between(1, most) } }, namespace)
  })
}

const doNotDisruptKey = 'karpenter.sh/do-not-disrupt'

/** Pods that say so themselves; some for a time only. */
export function doNotDisrupt(hands: Hands): void {
  const { dice } = hands
  const forever: PodShape = { cpu: 500, memory: 500, annotations: { [doNotDisruptKey]: 'true' } }
  hands.create(deployment, workload(deployment, 'untouchable', forever, { replicas: dice.between(1, 4) }))
  const timed: PodShape = { cpu: 300, memory: 300, annotations: { [doNotDisruptKey]: '10m' } }
  hands.create(deployment, workload(deployment, 'touchy', timed, { replicas: dice.between(1, 4) }))
  hands.every(20, 50, () => {
    hands.patch(deployment, 'untouchable', { spec: { replicas: dice.between(0, 4) } }, namespace)
  })
}
