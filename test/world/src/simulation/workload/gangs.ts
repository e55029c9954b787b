/** Gangs: PodGroups with pods that run together or not at all, and users who change their minds about them. */
import { type KubeObject, labels, type PodGroup, podGroupKinds } from '@tenon/api'
import { namespace, type PodShape, podTemplate, workload, workloadTypes } from './objects.ts'
import { type Hands, unsatisfiableLabel } from './workload-context.ts'

const { deployment, job } = workloadTypes
const runSeconds = 'tenon.sh/run-seconds'

/** The version that the embedded cluster serves. */
export const podGroupKind = podGroupKinds.kubernetes.filter(({ version }) => version === 'v1alpha2')

/** Services that run as a gang, jobs that come and go, a gang without enough pods, and a group that is none. */
export function gangs(hands: Hands): void {
  for (let at = 0; at < Math.max(1, Math.min(4, Math.round(hands.nodes / 5))); at++) team(hands, `team-${at}`)
  crowd(hands)
  tooFew(hands)
  trainings(hands)
}

/** Half of the gangs have a node for each pod. */
function aShape({ dice }: Hands, app: string): PodShape {
  const shape = { cpu: dice.oneOf([1000, 1500, 1500, 2000]), memory: dice.oneOf([1000, 2000]) }
  if (dice.chance(0.5)) return shape
  const term = { labelSelector: { matchLabels: { app } }, topologyKey: labels.hostname }
  const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } }
  return { ...shape, spec: { affinity } }
}

const sizeOf = ({ dice, nodes }: Hands): number => dice.between(2, Math.max(2, Math.min(8, nodes)))

/** Labels of which all nodes of a gang get one value: of the cloud, and of NodePools. */
function topologyOf({ dice }: Hands, ofPools = 'world.tenon.sh/pool'): string | undefined {
  return dice.oneOf([undefined, undefined, undefined, labels.zone, ofPools])
}

function inGroup(shape: PodShape, podGroupName: string): PodShape {
  return { ...shape, spec: { ...shape.spec, schedulingGroup: { podGroupName } } }
}

function createGroup(hands: Hands, name: string, minCount: number | undefined, key?: string): void {
  const group: PodGroup = {
    apiVersion: 'scheduling.k8s.io/v1alpha2',
    kind: 'PodGroup',
    metadata: { name, namespace },
    spec: {
      schedulingPolicy: minCount === undefined ? { basic: {} } : { gang: { minCount } },
      ...(key !== undefined && { schedulingConstraints: { topology: [{ key }] } }),
    },
  }
  for (const type of podGroupKind) hands.create(type, group)
}

function deleteGroup(hands: Hands, name: string): void {
  for (const type of podGroupKind) hands.delete(type, name, namespace)
}

/** A Deployment whose pods run together; it is scaled, stopped, and started again. */
function team(hands: Hands, name: string): void {
  const { dice } = hands
  const size = sizeOf(hands)
  // More pods than a NodePool's limits allow could not follow the first ones there.
  createGroup(hands, name, size, topologyOf(hands, labels.zone))
  hands.create(
    deployment,
    workload(deployment, name, inGroup(aShape(hands, name), name), { replicas: size + dice.between(0, 1) }),
  )
  hands.every(4, 12, () => {
    const replicas = dice.oneOf([0, 0, size, size, size + 1, size + 3])
    hands.patch(deployment, name, { spec: { replicas } }, namespace)
    if (replicas === 0)
      hands.later(dice.between(1, 8), () => {
        hands.patch(deployment, name, { spec: { replicas: size } }, namespace)
      })
  })
}

/** Pods of a basic group run one by one. */
function crowd(hands: Hands): void {
  createGroup(hands, 'crowd', undefined)
  const shape = inGroup({ cpu: 500, memory: 500 }, 'crowd')
  hands.create(deployment, workload(deployment, 'crowd', shape, { replicas: 2 }))
  hands.every(8, 25, () => {
    hands.patch(deployment, 'crowd', { spec: { replicas: hands.dice.between(0, 5) } }, namespace)
  })
}

/** One pod fewer than must run together: nothing is ever launched for them. */
function tooFew(hands: Hands): void {
  const size = sizeOf(hands)
  createGroup(hands, 'too-few', size + 1)
  const shape = { ...inGroup(aShape(hands, 'too-few'), 'too-few'), labels: { [unsatisfiableLabel]: 'true' } }
  hands.create(deployment, workload(deployment, 'too-few', shape, { replicas: size }))
}

/** Jobs with a gang for each; some are given up while their nodes come, or get their group late. */
function trainings(hands: Hands): void {
  const { dice } = hands
  let started = 0
  hands.every(2, 7, () => {
    const name = `train-${started++}`
    const size = sizeOf(hands)
    const put = (): void => createGroup(hands, name, size, topologyOf(hands))
    const grouped = inGroup(aShape(hands, name), name)
    const shape: PodShape = {
      ...grouped,
      annotations: { [runSeconds]: String(dice.between(60, 900)) },
      spec: { ...grouped.spec, restartPolicy: 'Never' },
    }
    if (dice.chance(0.8)) put()
    else hands.later(dice.between(5, 90) / 60, put)
    hands.create(job, aJob(name, size, shape))
    if (dice.chance(0.5)) visitors(hands, name, size)
    if (dice.chance(0.4)) {
      hands.later(dice.between(5, 150) / 60, () => {
        hands.delete(job, name, namespace)
        deleteGroup(hands, name)
      })
    } else hands.later(25, () => deleteGroup(hands, name))
  })
}

/** Small pods that wait while the nodes of a gang come: they fit there, too, and are bound before the gang. */
function visitors(hands: Hands, gang: string, count: number): void {
  const name = `visitor-${gang}`
  const shape: PodShape = { cpu: 700, memory: 700 }
  hands.later(hands.dice.between(10, 60) / 60, () => {
    hands.create(deployment, workload(deployment, name, shape, { replicas: 2 * count }))
    hands.later(6, () => hands.delete(deployment, name, namespace))
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
