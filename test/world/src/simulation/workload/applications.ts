/** Applications that are created, scaled and deleted. */
import { type KubeObject, kinds } from '@tenon/api'
import { isLarge, type WorkloadKind } from '../story.ts'
import { namespace, type PodShape, podTemplate, workload, workloadTypes } from './objects.ts'
import { type Hands, unsatisfiableLabel } from './workload-context.ts'

const { deployment, daemonSet, statefulSet, job } = workloadTypes
/** Told to the simulated kubelets: how long a pod runs. */
const runSeconds = 'tenon.sh/run-seconds'

/** A shape that fits every type of the general pools from `standard.large` on. */
function aShape(hands: Hands): PodShape {
  const { dice } = hands
  // Hundreds of pods show what thousands do: some nodes have room for one, others for a few.
  const cpu = dice.oneOf(isLarge(hands) ? [1000, 1500, 2000, 3000] : [100, 250, 500, 750, 1000, 1500, 2000])
  return { cpu, memory: Math.min(5000, Math.round(cpu * dice.oneOf([1, 2, 3]))) }
}

/** Replicas that take about `nodes` nodes of four cores. */
const replicasFor = (nodes: number, shape: PodShape): number =>
  Math.max(1, Math.round((nodes * 3500) / shape.cpu))

/**
 * Of a large world's nodes, the share that long-running applications are to fill. Most other kinds have a fixed size
 * and fill little of it; those that grow with it leave as much less, so that stories of one size are of one size.
 */
function shareInLarge({ drawn }: Hands): number {
  const others = [...usualShares].filter(([kind]) => drawn.has(kind))
  return others.reduce((left, [, share]) => left - share, 0.82)
}

/** What other kinds fill on average, measured by that of the applications. */
const usualShares: ReadonlyMap<WorkloadKind, number> = new Map([
  ['dailyWaves', 0.17],
  ['bursts', 0.08],
])

/** Long-running applications that are scaled now and then. */
export function deployments(hands: Hands): void {
  const { dice, nodes } = hands
  const count = Math.max(2, Math.min(20, Math.round(nodes / 4)))
  const share = isLarge(hands) ? shareInLarge(hands) : 0.4
  const usual = new Map<string, number>()
  const add = (name: string): void => {
    const shape = aShape(hands)
    const replicas = replicasFor((nodes * share) / count, shape)
    usual.set(name, replicas)
    hands.create(deployment, workload(deployment, name, shape, { replicas }))
  }
  for (let i = 0; i < count; i++) add(`web-${i}`)
  hands.every(5, 25, () => {
    const name = `web-${dice.between(0, count - 1)}`
    if (dice.chance(0.1)) {
      hands.delete(deployment, name, namespace)
      hands.later(dice.between(1, 10), () => add(name))
      return
    }
    const replicas = Math.round((usual.get(name) ?? 1) * dice.oneOf([0, 0.3, 0.6, 1, 1, 1.5, 2]))
    hands.patch(deployment, name, { spec: { replicas } }, namespace)
  })
}

export function daemonSets(hands: Hands): void {
  const everywhere = [{ operator: 'Exists' as const }]
  // Without precedence a daemon pod that comes late may find its node full, for good.
  const priorityClassName = 'system-node-critical'
  const agent = { cpu: 50, memory: 64, spec: { tolerations: everywhere, priorityClassName } }
  hands.create(daemonSet, workload(daemonSet, 'node-agent', agent))
  const shipper = { cpu: 100, memory: 100, spec: { priorityClassName } }
  hands.create(daemonSet, workload(daemonSet, 'log-shipper', shipper))
}

export function jobs(hands: Hands): void {
  const { dice } = hands
  let started = 0
  hands.every(4, 15, () => {
    const name = `batch-${started++}`
    const completions = dice.between(1, Math.max(2, Math.min(20, hands.nodes)))
    const shape: PodShape = {
      ...aShape(hands),
      annotations: { [runSeconds]: String(dice.between(20, 600)) },
      spec: { restartPolicy: 'Never' },
    }
    const object = {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name, namespace },
      spec: {
        completions,
        parallelism: completions,
        backoffLimit: 100,
        ttlSecondsAfterFinished: 300,
        template: podTemplate(name, shape),
      },
    }
    hands.create(job, object)
  })
}

export const csiDriver = 'csi.world.tenon.sh'

export function statefulSets(hands: Hands): void {
  const { dice } = hands
  const storageClass = {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'disks' },
    provisioner: csiDriver,
    volumeBindingMode: 'WaitForFirstConsumer',
    reclaimPolicy: 'Delete',
  }
  hands.create(workloadTypes.storageClass, storageClass)
  const claim = {
    metadata: { name: 'data' },
    spec: {
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'disks',
      resources: { requests: { storage: '10Gi' } },
    },
  }
  for (const name of ['db', 'queue']) {
    const spec = { replicas: dice.between(1, 3), serviceName: name, volumeClaimTemplates: [claim] }
    hands.create(statefulSet, workload(statefulSet, name, { cpu: 500, memory: 1000 }, spec))
    hands.every(20, 60, () => {
      hands.patch(statefulSet, name, { spec: { replicas: dice.between(0, 4) } }, namespace)
    })
  }
}

export function bursts(hands: Hands): void {
  const { dice, nodes } = hands
  let started = 0
  hands.every(20, 60, () => {
    const name = `burst-${started++}`
    const shape = aShape(hands)
    const replicas = Math.min(200, replicasFor(nodes * 0.3, shape))
    hands.create(deployment, workload(deployment, name, shape, { replicas }))
    const minutes = dice.between(3, 20)
    hands.later(minutes, () => hands.delete(deployment, name, namespace))
  })
}

export function dailyWaves(hands: Hands): void {
  const shape: PodShape = isLarge(hands) ? { cpu: 3000, memory: 4000 } : { cpu: 500, memory: 900 }
  const most = replicasFor(hands.nodes * 0.3, shape)
  const phase = hands.dice.between(0, 23)
  const replicas = (): number => {
    const hours = hands.nowMs / 3_600_000 + phase
    return Math.round(most * (0.6 + 0.4 * Math.sin((hours / 24) * 2 * Math.PI)))
  }
  hands.create(deployment, workload(deployment, 'daily', shape, { replicas: replicas() }))
  hands.every(10, 15, () => {
    hands.patch(deployment, 'daily', { spec: { replicas: replicas() } }, namespace)
  })
}

export function gpus(hands: Hands): void {
  const { dice } = hands
  const shape: PodShape = {
    cpu: 1000,
    memory: 4000,
    extended: { 'nvidia.com/gpu': '1' },
    spec: { tolerations: [{ key: 'nvidia.com/gpu', operator: 'Exists' }] },
  }
  hands.create(deployment, workload(deployment, 'training', shape, { replicas: dice.between(0, 2) }))
  hands.every(20, 60, () => {
    hands.patch(deployment, 'training', { spec: { replicas: dice.between(0, 3) } }, namespace)
  })
}

/** Pods of nobody: whoever evicts them ends them for good. */
export function barePods(hands: Hands): void {
  const { dice } = hands
  let started = 0
  hands.every(10, 30, () => {
    const name = `bare-${started++}`
    const { metadata, spec } = podTemplate(name, aShape(hands)) as Pick<KubeObject, 'metadata'> & {
      readonly spec: object
    }
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { ...metadata, name, namespace }, spec }
    hands.create(kinds.pod, pod)
    hands.later(dice.between(5, 40), () => hands.delete(kinds.pod, name, namespace))
  })
}

/** Pods that no pool can ever take. */
export function unsatisfiable(hands: Hands): void {
  const labels = { [unsatisfiableLabel]: 'true' }
  const shapes: readonly PodShape[] = [
    { cpu: 500_000, memory: 1000, labels },
    { cpu: 100, memory: 100, labels, spec: { nodeSelector: { 'world.tenon.sh/planet': 'mars' } } },
  ]
  for (const [i, shape] of shapes.entries())
    hands.create(deployment, workload(deployment, `impossible-${i}`, shape, { replicas: 2 }))
}

/** Applications with a node for each pod that are stopped, for less than a minute or for some, and started again. */
export function restarts(hands: Hands): void {
  const { dice, nodes } = hands
  const replicas = dice.between(2, Math.max(2, Math.min(6, (2 * nodes) / 3)))
  const apart = {
    podAntiAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [
        {
          labelSelector: { matchLabels: { app: 'office' } },
          topologyKey: 'kubernetes.io/hostname',
        },
      ],
    },
  }
  const shape: PodShape = { cpu: 1500, memory: 2500, spec: { affinity: apart } }
  hands.create(deployment, workload(deployment, 'office', shape, { replicas }))
  hands.every(4, 8, () => {
    hands.patch(deployment, 'office', { spec: { replicas: 0 } }, namespace)
    const seconds = dice.chance(0.5) ? dice.between(30, 60) : dice.between(60, 420)
    hands.later(seconds / 60, () => {
      hands.patch(deployment, 'office', { spec: { replicas } }, namespace)
    })
  })
}
