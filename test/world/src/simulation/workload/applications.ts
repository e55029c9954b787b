/** Applications that are created, scaled and deleted. */
import { type KubeObject, kinds } from '@tenon/api'
import { isLarge, type WorkloadKind } from '../story.ts'
import { namespace, type PodShape, podTemplate, workload, workloadTypes } from './objects.ts'
import { type WorkloadContext, unsatisfiableLabel } from './workload-context.ts'

const { deployment, daemonSet, statefulSet, job } = workloadTypes
/** Annotation for the simulated kubelets: how long a pod runs. */
const runSeconds = 'tenon.sh/run-seconds'

/** A shape that fits every type of the general pools from `standard.large` on. */
function aShape(context: WorkloadContext): PodShape {
  const { dice } = context
  // Hundreds of pods are as useful as thousands: some nodes fit one, others a few.
  const cpu = dice.oneOf(isLarge(context) ? [1000, 1500, 2000, 3000] : [100, 250, 500, 750, 1000, 1500, 2000])
  return { cpu, memory: Math.min(5000, Math.round(cpu * dice.oneOf([1, 2, 3]))) }
}

/** Replicas that need about `nodes` nodes with four cores. */
const replicasFor = (nodes: number, shape: PodShape): number =>
  Math.max(1, Math.round((nodes * 3500) / shape.cpu))

/**
 * The share of a large world's nodes that long-running applications fill. Most other kinds have a fixed, small
 * size; the share is reduced by those that grow with the world, so that stories of one size have the same
 * number of nodes.
 */
function shareInLarge({ drawn }: WorkloadContext): number {
  const others = [...usualShares].filter(([kind]) => drawn.has(kind))
  return others.reduce((left, [, share]) => left - share, 0.82)
}

/** The average share of other kinds, relative to the applications. */
const usualShares: ReadonlyMap<WorkloadKind, number> = new Map([
  ['dailyWaves', 0.17],
  ['bursts', 0.08],
])

/** Long-running applications that are scaled now and then. */
export function deployments(context: WorkloadContext): void {
  const { dice, nodes } = context
  const count = Math.max(2, Math.min(20, Math.round(nodes / 4)))
  const share = isLarge(context) ? shareInLarge(context) : 0.4
  const usual = new Map<string, number>()
  const add = (name: string): void => {
    const shape = aShape(context)
    const replicas = replicasFor((nodes * share) / count, shape)
    usual.set(name, replicas)
    context.create(deployment, workload(deployment, name, shape, { replicas }))
  }
  for (let i = 0; i < count; i++) add(`web-${i}`)
  context.every(5, 25, () => {
    const name = `web-${dice.between(0, count - 1)}`
    if (dice.chance(0.1)) {
      context.delete(deployment, name, namespace)
      context.later(dice.between(1, 10), () => add(name))
      return
    }
    const replicas = Math.round((usual.get(name) ?? 1) * dice.oneOf([0, 0.3, 0.6, 1, 1, 1.5, 2]))
    context.patch(deployment, name, { spec: { replicas } }, namespace)
  })
}

export function daemonSets(context: WorkloadContext): void {
  const everywhere = [{ operator: 'Exists' as const }]
  // Without priority, a late DaemonSet pod may find its node full, for good.
  const priorityClassName = 'system-node-critical'
  const agent = { cpu: 50, memory: 64, spec: { tolerations: everywhere, priorityClassName } }
  context.create(daemonSet, workload(daemonSet, 'node-agent', agent))
  const shipper = { cpu: 100, memory: 100, spec: { priorityClassName } }
  context.create(daemonSet, workload(daemonSet, 'log-shipper', shipper))
}

export function jobs(context: WorkloadContext): void {
  const { dice } = context
  let started = 0
  context.every(4, 15, () => {
    const name = `batch-${started++}`
    const completions = dice.between(1, Math.max(2, Math.min(20, context.nodes)))
    const shape: PodShape = {
      ...aShape(context),
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
    context.create(job, object)
  })
}

export const csiDriver = 'csi.world.tenon.sh'

export function statefulSets(context: WorkloadContext): void {
  const { dice } = context
  const storageClass = {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'disks' },
    provisioner: csiDriver,
    volumeBindingMode: 'WaitForFirstConsumer',
    reclaimPolicy: 'Delete',
  }
  context.create(workloadTypes.storageClass, storageClass)
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
    context.create(statefulSet, workload(statefulSet, name, { cpu: 500, memory: 1000 }, spec))
    context.every(20, 60, () => {
      context.patch(statefulSet, name, { spec: { replicas: dice.between(0, 4) } }, namespace)
    })
  }
}

export function bursts(context: WorkloadContext): void {
  const { dice, nodes } = context
  let started = 0
  context.every(20, 60, () => {
    const name = `burst-${started++}`
    const shape = aShape(context)
    const replicas = Math.min(200, replicasFor(nodes * 0.3, shape))
    context.create(deployment, workload(deployment, name, shape, { replicas }))
    const minutes = dice.between(3, 20)
    context.later(minutes, () => context.delete(deployment, name, namespace))
  })
}

export function dailyWaves(context: WorkloadContext): void {
  const shape: PodShape = isLarge(context) ? { cpu: 3000, memory: 4000 } : { cpu: 500, memory: 900 }
  const most = replicasFor(context.nodes * 0.3, shape)
  const phase = context.dice.between(0, 23)
  const replicas = (): number => {
    const hours = context.nowMs / 3_600_000 + phase
    return Math.round(most * (0.6 + 0.4 * Math.sin((hours / 24) * 2 * Math.PI)))
  }
  context.create(deployment, workload(deployment, 'daily', shape, { replicas: replicas() }))
  context.every(10, 15, () => {
    context.patch(deployment, 'daily', { spec: { replicas: replicas() } }, namespace)
  })
}

export function gpus(context: WorkloadContext): void {
  const { dice } = context
  const shape: PodShape = {
    cpu: 1000,
    memory: 4000,
    extended: { 'nvidia.com/gpu': '1' },
    spec: { tolerations: [{ key: 'nvidia.com/gpu', operator: 'Exists' }] },
  }
  context.create(deployment, workload(deployment, 'training', shape, { replicas: dice.between(0, 2) }))
  context.every(20, 60, () => {
    context.patch(deployment, 'training', { spec: { replicas: dice.between(0, 3) } }, namespace)
  })
}

/** Pods without a controller. Evicting one deletes it for good. */
export function barePods(context: WorkloadContext): void {
  const { dice } = context
  let started = 0
  context.every(10, 30, () => {
    const name = `bare-${started++}`
    const { metadata, spec } = podTemplate(name, aShape(context)) as Pick<KubeObject, 'metadata'> & {
      readonly spec: object
    }
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { ...metadata, name, namespace }, spec }
    context.create(kinds.pod, pod)
    context.later(dice.between(5, 40), () => context.delete(kinds.pod, name, namespace))
  })
}

/** Pods that do not fit any pool. */
export function unsatisfiable(context: WorkloadContext): void {
  const labels = { [unsatisfiableLabel]: 'true' }
  const shapes: readonly PodShape[] = [
    { cpu: 500_000, memory: 1000, labels },
    { cpu: 100, memory: 100, labels, spec: { nodeSelector: { 'world.tenon.sh/planet': 'mars' } } },
  ]
  for (const [i, shape] of shapes.entries())
    context.create(deployment, workload(deployment, `impossible-${i}`, shape, { replicas: 2 }))
}

/** Applications with one pod per node that are stopped, for seconds or for minutes, and started again. */
export function restarts(context: WorkloadContext): void {
  const { dice, nodes } = context
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
  context.create(deployment, workload(deployment, 'office', shape, { replicas }))
  context.every(4, 8, () => {
    context.patch(deployment, 'office', { spec: { replicas: 0 } }, namespace)
    const seconds = dice.chance(0.5) ? dice.between(30, 60) : dice.between(60, 420)
    context.later(seconds / 60, () => {
      context.patch(deployment, 'office', { spec: { replicas } }, namespace)
    })
  })
}
