/** The simulated Cluster API in a simulation: the cluster is its own management cluster. */
import { isConditionTrue, type KubeObject, type Node, ownValue } from '@tenon/api'
import { clusterAPINodeClassKind, openClusterApi, ownNames } from '@tenon/provider-cluster-api'
import type { FullMachine, MachineShape } from '@tenon/simulator-cluster-api'
import { rfc3339 } from '@tenon/runtime'
import type { World } from '../../world.ts'
import { playHubFaults } from '../faults/hub-faults.ts'
import {
  boundTo,
  deploymentOf,
  deploymentsIn,
  isLeaving,
  isMember,
  meddledAnnotation,
  memberLabel,
  memberMachinesIn,
  namespace,
} from './hub-objects.ts'
import type { CloudDemand, CloudInstance, Wares, WorldCloud } from './world-cloud.ts'

const deleteMachine = 'cluster.x-k8s.io/delete-machine'
const machines = '/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines/'

/** How long a Machine may have failed before a MachineHealthCheck deletes it. */
const healthCheckMs = 5 * 60_000
/** How long one may take to become ready, as by Cluster API's default. */
const startMs = 10 * 60_000

interface Size {
  readonly type: string
  readonly cpu: number
  readonly memory: string
  readonly price: number
}

const sizes: readonly Size[] = [
  { type: 'small', cpu: 4, memory: '8Gi', price: 0.05 },
  { type: 'medium', cpu: 8, memory: '16Gi', price: 0.098 },
  { type: 'large', cpu: 8, memory: '32Gi', price: 0.14 },
  { type: 'huge', cpu: 16, memory: '32Gi', price: 0.19 },
]

/** Member MachineDeployments: two of the smallest type; those of `large` have no MachineHealthCheck. */
const members: readonly (Size & { readonly name: string })[] = [
  ...sizes.map((size) => ({ ...size, name: size.type })),
  { type: 'small', cpu: 4, memory: '8Gi', price: 0.055, name: 'small-reserve' },
]

const prices: ReadonlyMap<string, number> = new Map(sizes.map(({ type, price }) => [type, price]))

/** A MachineDeployment that a user keeps for themselves. */
const privateDeployment = 'private'

const wares: Wares = {
  nodeClassKind: clusterAPINodeClassKind,
  nodeClass(name) {
    const object: KubeObject & { readonly spec: object } = {
      apiVersion: 'karpenter.cluster.x-k8s.io/v1alpha1',
      kind: 'ClusterAPINodeClass',
      metadata: { name },
      spec: {},
    }
    return object
  },
  types: sizes.map(({ type }) => type),
  typesInLarge: 2,
  staticType: 'medium',
  choosyTypes: ['small', 'medium'],
  gpuTypes: [],
  drift: (person) => {
    const driftPolicy = person.dice.oneOf(['Replace', 'Ignore'])
    person.patch(clusterAPINodeClassKind, 'standard', { spec: { driftPolicy } })
  },
}

/**
 * The cloud of a world with the provider `cluster-api`.
 * @param hasZones whether members are in several zones.
 */
export function clusterApiIn(world: World, hasZones: boolean): WorldCloud {
  const { hub, kinds } = world.clusterApi
  const machineAt = (path: string): FullMachine | undefined =>
    hub.get(kinds.machine, namespace, (path.split('?')[0] ?? '').slice(machines.length))
  for (const [at, { name, ...size }] of members.entries())
    createDeployment(world, name, size, hasZones && at % 2 === 1 ? 'b' : 'a')
  createDeployment(world, privateDeployment, undefined)
  checkStarts(world)
  return {
    wares,
    prices,
    objects: kinds.machine,
    openProvider: async ({ cloud: _none, ...parts }) =>
      await openClusterApi({
        ...parts,
        env: {},
        cloud: { fenced: (transport) => transport, userAgent: 'karpenter/world' },
      }),
    instances: () =>
      memberMachinesIn(world).map(
        ({ metadata, spec, status }): CloudInstance => ({
          id: metadata.name,
          providerId: spec?.providerID ?? '',
          claim: ownValue(metadata.annotations, ownNames.nodeClaim) ?? '',
          state: metadata.deletionTimestamp === undefined ? (status?.phase ?? 'new') : 'Deleting',
          isAlive: true,
        }),
      ),
    demandOf({ method, path, body }): CloudDemand | undefined {
      if (!path.startsWith(machines)) return undefined
      const machine = machineAt(path)
      if (machine === undefined || isLeaving(machine)) return undefined
      const { annotations = {} } = method === 'PATCH' ? (JSON.parse(String(body)) as KubeObject).metadata : {}
      const claim = ownValue(annotations, ownNames.nodeClaim)
      if (claim !== undefined && boundTo(machine) === undefined) return { launchFor: claim }
      const ends = method === 'DELETE' || Object.hasOwn(annotations, deleteMachine)
      const providerId = machine.spec?.providerID
      return ends && providerId !== undefined ? { end: providerId } : undefined
    },
    isForeign: (node: Node) =>
      ownValue(node.metadata.labels, 'world.tenon.sh/deployment') === privateDeployment,
    loseOne(random) {
      const there = memberMachinesIn(world).filter(
        (each) => each.status?.phase === 'Running' && !isLeaving(each),
      )
      const victim = there[random.uint32() % Math.max(1, there.length)]
      if (victim === undefined) return undefined
      world.clusterApi.lose(namespace, victim.metadata.name)
      world.clock.after(healthCheckMs, () => remediate(world, victim))
      return victim.metadata.name
    },
    playFaults: (faults) => playHubFaults(world, faults),
    leftovers: (held) => leftoversOf(world, held),
  }
}

/**
 * Remediates Machines of rollouts that never become ready, for which the rollout would wait for ever. Those of claims
 * are Tenon's to give up.
 */
function checkStarts(world: World): void {
  const { clock } = world
  for (const machine of memberMachinesIn(world)) {
    const { creationTimestamp = '' } = machine.metadata
    const isLate = clock.now() - Date.parse(creationTimestamp) >= startMs
    if (isLate && boundTo(machine) === undefined && !isConditionTrue(machine, 'Ready'))
      remediate(world, machine)
  }
  clock.after(60_000, () => checkStarts(world))
}

/** Remediates a failed Machine as a MachineHealthCheck does. */
function remediate({ clock, clusterApi: { hub, kinds } }: World, { metadata }: FullMachine): void {
  const found = hub.get(kinds.machine, namespace, metadata.name)
  if (found === undefined || found.metadata.uid !== metadata.uid || isLeaving(found)) return
  const annotations = { [meddledAnnotation]: rfc3339(clock.now()) }
  hub.patch(kinds.deployment, namespace, deploymentOf(found), { metadata: { annotations } })
  hub.delete(kinds.machine, namespace, metadata.name)
}

/**
 * The number of replicas must equal that of Machines, and each Machine must be bound. A Machine that Cluster API deletes
 * stays as long as a pod there may not be evicted; a rollout has made another in its place, which nobody may need.
 */
function leftoversOf(world: World, held: ReadonlySet<string>): readonly string[] {
  const all = memberMachinesIn(world)
  return deploymentsIn(world)
    .filter(isMember)
    .flatMap(({ metadata: { name }, spec }) => {
      const own = all.filter((machine) => deploymentOf(machine) === name)
      const blocked = own.filter(
        (machine) => isLeaving(machine) && held.has(machine.status?.nodeRef?.name ?? ''),
      )
      const staying = own.filter((machine) => !blocked.includes(machine))
      const bound = staying.filter((machine) => boundTo(machine) !== undefined)
      const { replicas = 0 } = spec ?? {}
      return replicas === staying.length && staying.length - bound.length <= blocked.length
        ? []
        : [
            `MachineDeployment ${name} has ${replicas} replicas, ${own.length} Machines, ${own.length - staying.length + bound.length} of them bound`,
          ]
    })
}

function createDeployment(
  { clusterApi: { hub, kinds } }: World,
  name: string,
  size: Omit<Size, 'name'> | undefined,
  zone = 'a',
) {
  const { type: instanceType = privateDeployment, cpu = 2, memory = '4Gi', price } = size ?? {}
  const shape: MachineShape = {
    capacity: { cpu: String(cpu), memory, 'ephemeral-storage': '50Gi', pods: '110' },
    ...(size === undefined && {
      registersUnregistered: false,
      labels: { 'world.tenon.sh/deployment': privateDeployment },
      taints: [{ key: 'world.tenon.sh/private', value: 'true', effect: 'NoSchedule' }],
    }),
  }
  const api = (type: { readonly group: string; readonly version: string }) => `${type.group}/${type.version}`
  hub.create(kinds.template, {
    apiVersion: api(kinds.template),
    kind: kinds.template.kind,
    metadata: { name, namespace },
    spec: { template: { spec: shape } },
  })
  const nodeLabels = [
    `node.kubernetes.io/instance-type=${instanceType}`,
    `topology.kubernetes.io/zone=${zone}`,
    'karpenter.sh/capacity-type=on-demand',
  ]
  hub.create(kinds.deployment, {
    apiVersion: api(kinds.deployment),
    kind: kinds.deployment.kind,
    metadata: {
      name,
      namespace,
      ...(size !== undefined && {
        labels: { [memberLabel]: '' },
        annotations: {
          'cluster.x-k8s.io/machine-current-price': String(price),
          'capacity.cluster-autoscaler.kubernetes.io/labels': nodeLabels.join(','),
        },
      }),
    },
    spec: {
      clusterName: 'workload',
      replicas: size === undefined ? 2 : 0,
      ...(name === 'large' && { rollout: { strategy: { type: 'OnDelete' } } }),
      template: {
        spec: {
          clusterName: 'workload',
          version: 'v1.34.1',
          infrastructureRef: { apiGroup: kinds.template.group, kind: kinds.template.kind, name },
        },
      },
    },
  })
}
