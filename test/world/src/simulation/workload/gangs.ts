/** Gangs: PodGroups with pods that run together or not at all, and users who change them. */
import { type KubeObject, labels, type PodGroup, podGroupKinds } from '@tenon/api'
import { namespace, type PodShape, podTemplate, workload, workloadTypes } from './objects.ts'
import { type WorkloadContext, unsatisfiableLabel } from './workload-context.ts'

const { deployment, job } = workloadTypes
const runSeconds = 'tenon.sh/run-seconds'

/** The version that the embedded cluster serves. */
export const podGroupKind = podGroupKinds.kubernetes.filter(({ version }) => version === 'v1alpha2')

/** Services that run as a gang, short-lived jobs, a gang with too few pods, and a basic group. */
export function gangs(context: WorkloadContext): void {
  for (let at = 0; at < Math.max(1, Math.min(4, Math.round(context.nodes / 5))); at++)
    team(context, `team-${at}`)
  crowd(context)
  tooFew(context)
  trainings(context)
}

/** Half of the gangs have one pod per node. */
function aShape({ dice }: WorkloadContext, app: string): PodShape {
  const shape = { cpu: dice.oneOf([1000, 1500, 1500, 2000]), memory: dice.oneOf([1000, 2000]) }
  if (dice.chance(0.5)) return shape
  const term = { labelSelector: { matchLabels: { app } }, topologyKey: labels.hostname }
  const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } }
  return { ...shape, spec: { affinity } }
}

const sizeOf = ({ dice, nodes }: WorkloadContext): number => dice.between(2, Math.max(2, Math.min(8, nodes)))

/** Labels whose value all nodes of a gang must share: of the cloud, and of NodePools. */
function topologyOf({ dice }: WorkloadContext, ofPools = 'world.tenon.sh/pool'): string | undefined {
  return dice.oneOf([undefined, undefined, undefined, labels.zone, ofPools])
}

function inGroup(shape: PodShape, podGroupName: string): PodShape {
  return { ...shape, spec: { ...shape.spec, schedulingGroup: { podGroupName } } }
}

function createGroup(
  context: WorkloadContext,
  name: string,
  minCount: number | undefined,
  key?: string,
): void {
  const group: PodGroup = {
    apiVersion: 'scheduling.k8s.io/v1alpha2',
    kind: 'PodGroup',
    metadata: { name, namespace },
    spec: {
      schedulingPolicy: minCount === undefined ? { basic: {} } : { gang: { minCount } },
      ...(key !== undefined && { schedulingConstraints: { topology: [{ key }] } }),
    },
  }
  for (const type of podGroupKind) context.create(type, group)
}

function deleteGroup(context: WorkloadContext, name: string): void {
  for (const type of podGroupKind) context.delete(type, name, namespace)
}

/** A Deployment whose pods run together; it is scaled, stopped, and started again. */
function team(context: WorkloadContext, name: string): void {
  const { dice } = context
  const size = sizeOf(context)
  // With more pods than a NodePool's limits allow, the last ones could not join the first ones there.
  createGroup(context, name, size, topologyOf(context, labels.zone))
  context.create(
    deployment,
    workload(deployment, name, inGroup(aShape(context, name), name), { replicas: size + dice.between(0, 1) }),
  )
  context.every(4, 12, () => {
    const replicas = dice.oneOf([0, 0, size, size, size + 1, size + 3])
    context.patch(deployment, name, { spec: { replicas } }, namespace)
    if (replicas === 0)
      context.later(dice.between(1, 8), () => {
        context.patch(deployment, name, { spec: { replicas: size } }, namespace)
      })
  })
}

/** Pods of a basic group run independently. */
function crowd(context: WorkloadContext): void {
  createGroup(context, 'crowd', undefined)
  const shape = inGroup({ cpu: 500, memory: 500 }, 'crowd')
  context.create(deployment, workload(deployment, 'crowd', shape, { replicas: 2 }))
  context.every(8, 25, () => {
    context.patch(deployment, 'crowd', { spec: { replicas: context.dice.between(0, 5) } }, namespace)
  })
}

/** One pod less than required: nothing is ever launched for them. */
function tooFew(context: WorkloadContext): void {
  const size = sizeOf(context)
  createGroup(context, 'too-few', size + 1)
  const shape = {
    ...inGroup(aShape(context, 'too-few'), 'too-few'),
    labels: { [unsatisfiableLabel]: 'true' },
  }
  context.create(deployment, workload(deployment, 'too-few', shape, { replicas: size }))
}

/** Jobs with a gang each; some are cancelled while their nodes launch, or get their group late. */
function trainings(context: WorkloadContext): void {
  const { dice } = context
  let started = 0
  context.every(2, 7, () => {
    const name = `train-${started++}`
    const size = sizeOf(context)
    const put = (): void => createGroup(context, name, size, topologyOf(context))
    const grouped = inGroup(aShape(context, name), name)
    const shape: PodShape = {
      ...grouped,
      annotations: { [runSeconds]: String(dice.between(60, 900)) },
      spec: { ...grouped.spec, restartPolicy: 'Never' },
    }
    if (dice.chance(0.8)) put()
    else context.later(dice.between(5, 90) / 60, put)
    context.create(job, aJob(name, size, shape))
    if (dice.chance(0.5)) visitors(context, name, size)
    if (dice.chance(0.4)) {
      context.later(dice.between(5, 150) / 60, () => {
        context.delete(job, name, namespace)
        deleteGroup(context, name)
      })
    } else context.later(25, () => deleteGroup(context, name))
  })
}

/**
 * Small pods that are pending while the nodes of a gang launch: they fit there too, and are bound before the
 * gang.
 */
function visitors(context: WorkloadContext, gang: string, count: number): void {
  const name = `visitor-${gang}`
  const shape: PodShape = { cpu: 700, memory: 700 }
  context.later(context.dice.between(10, 60) / 60, () => {
    context.create(deployment, workload(deployment, name, shape, { replicas: 2 * count }))
    context.later(6, () => context.delete(deployment, name, namespace))
  })
}

function aJob(name: string, size: number, shape: PodShape): KubeObject {
  const object = {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name, namespace },
    spec: {
      completions: size,
      parallelism: size,
      backoffLimit: 100,
      ttlSecondsAfterFinished: 60,
      template: podTemplate(name, shape),
    },
  }
  return object
}
