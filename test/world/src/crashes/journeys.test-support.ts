/** Pieces of a node's life in which a controller may die at any write. */
import {
  autoscalingKinds,
  conditionOf,
  karpenterKinds,
  kinds,
  type KubeObject,
  labels,
  type NodeClaim,
  type Pod,
  type Taint,
} from '@tenon/api'
import { defaultSettings } from '@tenon/operator'
import { catalogueOf } from '../testing/kwok-stage.test-support.ts'
import { deploymentKind } from '../world.ts'
import type { Journey } from './crash-run.test-support.ts'
import { type Stand, seconds } from './stand.test-support.ts'

const container = (requests: Readonly<Record<string, string>>) => ({
  name: 'app',
  image: 'registry.k8s.io/pause',
  resources: { requests },
})

/** A Deployment whose pods keep apart, so that each needs a node. */
function aSpreadDeployment(replicas: number): KubeObject {
  const matchLabels = { app: 'web' }
  const term = { labelSelector: { matchLabels }, topologyKey: labels.hostname }
  const object = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'default' },
    spec: {
      replicas,
      selector: { matchLabels },
      template: {
        metadata: { labels: matchLabels },
        spec: {
          containers: [container({ cpu: '500m', memory: '512Mi' })],
          affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } },
        },
      },
    },
  }
  return object
}

/** Two pods that keep apart get a node each. */
export const launch: Journey = {
  name: 'launch',
  prepare: async () => {
    // It starts in an empty cluster.
  },
  begin: ({ world }) => {
    world.create(deploymentKind, aSpreadDeployment(2))
  },
  isOver: (stand) => isAllRunning(stand, 2),
}

function isAllRunning(stand: Stand, pods: number): boolean {
  const isUp = stand.world.claims().every(({ metadata }) => stand.holds(metadata.name, 'Initialized'))
  return isUp && stand.runningPods().length === pods
}

const agentTaint: Taint = { key: 'example.com/agent', effect: 'NoSchedule' }

const dense = (name: string) => ({
  name,
  offerings: [
    {
      Price: 0.1,
      Available: true,
      Requirements: [
        { key: labels.capacityType, operator: 'In', values: ['on-demand'] },
        { key: labels.zone, operator: 'In', values: ['test-zone-a'] },
      ],
    },
  ],
  architecture: 'amd64',
  operatingSystems: ['linux'],
  resources: { cpu: '2', memory: '4Gi', 'ephemeral-storage': '20Gi', pods: '1300' },
})

/** A ProvisioningRequest gets two nodes, each for more than a thousand of its pods. */
export const largeRequest: Journey = {
  name: 'large request',
  options: {
    servesRequests: true,
    kwok: { instanceTypes: catalogueOf([dense('c-1x-amd64-linux')]) },
    settings: { featureGates: { ...defaultSettings.featureGates, groupScheduling: true } },
  },
  prepare: async ({ world }) => {
    world.create(kinds.podTemplate, {
      apiVersion: 'v1',
      kind: 'PodTemplate',
      metadata: { name: 'many', namespace: 'default' },
      template: { spec: { containers: [container({ cpu: '1m' })] } },
    })
  },
  begin: ({ world }) => {
    world.create(autoscalingKinds.provisioningRequest, {
      apiVersion: 'autoscaling.x-k8s.io/v1',
      kind: 'ProvisioningRequest',
      metadata: { name: 'many', namespace: 'default' },
      spec: {
        provisioningClassName: 'best-effort-atomic-scale-up.autoscaling.x-k8s.io',
        podSets: [{ podTemplateRef: { name: 'many' }, count: 2500 }],
      },
    })
  },
  isOver: ({ world }) => {
    const request = world.cluster.server.local.get(autoscalingKinds.provisioningRequest, 'default', 'many')
    return request !== undefined && conditionOf(request, 'Provisioned')?.status === 'True'
  },
}

/** From a launched instance to a node that takes pods, once an agent has taken its startup taint away. */
export const registration: Journey = {
  name: 'registration',
  prepare: async (stand) => {
    const { world } = stand
    world.cluster.server.local.subscribe(kinds.node, {
      updated: ({ metadata, spec }) => {
        const others = (spec?.taints ?? []).filter(({ key }) => key !== agentTaint.key)
        if (metadata.labels?.[labels.registered] === undefined || others.length === spec?.taints?.length)
          return
        world.clock.after(2 * seconds, () => {
          const now = world.cluster.server.local.get(kinds.node, undefined, metadata.name)
          const taints = (now?.spec?.taints ?? []).filter(({ key }) => key !== agentTaint.key)
          world.cluster.server.local.patch(kinds.node, undefined, metadata.name, { spec: { taints } })
        })
      },
    })
    stand.createClaim(
      'a',
      { taints: [{ key: 'team', value: 'a', effect: 'NoSchedule' }], startupTaints: [agentTaint] },
      { labels: { team: 'a' }, annotations: { 'example.com/note': 'kept' } },
    )
    await stand.until(() => stand.holds('a', 'Launched'))
  },
  begin: () => {
    // The instance joins by itself.
  },
  isOver: (stand) => stand.holds('a', 'Initialized'),
}

const elsewhere = 'elsewhere'

/** Initializes claim `a`, and starts a node of somebody else with room for its pods. */
async function aNodeToDrain(stand: Stand, claim: Partial<NodeClaim['spec']>): Promise<string> {
  const { world } = stand
  const resources = { cpu: '16', memory: '32Gi', pods: '110' }
  world.cluster.kubelets.start({
    nodeName: elsewhere,
    providerId: 'other://elsewhere',
    labels: {},
    taints: [],
    capacity: resources,
    allocatable: resources,
    addresses: [],
    kubeletVersion: 'v1.34.1',
    systemUuid: elsewhere,
  })
  let replacements = 0
  world.cluster.server.local.subscribe<Pod>(kinds.pod, {
    deleted: ({ metadata, spec }) => {
      if (metadata.ownerReferences !== undefined || spec?.nodeName === elsewhere) return
      const { priorityClassName } = spec ?? {}
      stand.createPod(
        `${metadata.labels?.app}-again-${replacements++}`,
        elsewhere,
        { labels: metadata.labels ?? {} },
        priorityClassName === undefined ? {} : { priorityClassName },
      )
    },
  })
  stand.createClaim('a', claim)
  await stand.until(() => stand.holds('a', 'Initialized'))
  return stand.claim('a')?.status?.nodeName ?? ''
}

/** Three pods on a node, and a budget that lets so many of them be away. */
function guardedPods(stand: Stand, node: string, minAvailable: number): void {
  stand.world.create(kinds.podDisruptionBudget, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'guard', namespace: 'default' },
    spec: { minAvailable, selector: { matchLabels: { app: 'guarded' } } },
  })
  for (const n of [1, 2, 3]) stand.createPod(`guarded-${n}`, node, { labels: { app: 'guarded' } })
}

function createDaemonSet({ world }: Stand): void {
  const matchLabels = { app: 'daemon' }
  world.create(kinds.daemonSet, {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'daemon', namespace: 'default' },
    spec: {
      selector: { matchLabels },
      template: {
        metadata: { labels: matchLabels },
        spec: { nodeSelector: { [labels.nodePool]: 'default' }, containers: [container({})] },
      },
    },
  })
}

/** A volume that is attached to a node until a while after a pod has gone. */
function attachVolume({ world }: Stand, node: string, pod: string): void {
  const { local } = world.cluster.server
  world.create(kinds.volumeAttachment, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'VolumeAttachment',
    metadata: { name: 'data' },
    spec: { attacher: 'csi.example.com', nodeName: node, source: { persistentVolumeName: 'data' } },
  })
  local.subscribe<Pod>(kinds.pod, {
    deleted: ({ metadata }) => {
      if (metadata.name !== pod) return
      world.clock.after(2 * seconds, () => {
        local.delete(kinds.volumeAttachment, undefined, 'data')
      })
    },
  })
}

const protectedFor = (value: string) => ({ 'karpenter.sh/do-not-disrupt': value })
const isDrained = ({ world }: Stand) =>
  world.claims().length === 0 &&
  world.nodes().length === 1 &&
  world.pods().every(({ status }) => status?.phase === 'Running')

/** Pods under a PDB, a protected one, a daemon's, a critical one and one with a volume leave in order. */
export const drain: Journey = {
  name: 'drain',
  prepare: async (stand) => {
    const node = await aNodeToDrain(stand, {})
    createDaemonSet(stand)
    guardedPods(stand, node, 2)
    stand.createPod('protected', node, { labels: { app: 'protected' }, annotations: protectedFor('8s') })
    stand.createPod(
      'vital',
      node,
      { labels: { app: 'vital' } },
      { priorityClassName: 'system-node-critical' },
    )
    attachVolume(stand, node, 'vital')
    await stand.until(() => stand.runningPods().length === 6)
  },
  begin: (stand) => {
    stand.delete(karpenterKinds.nodeClaim, 'a')
  },
  isOver: isDrained,
}

/** Pods that nothing may evict, and one that a full PDB guards, go by the deadline. */
export const drainByDeadline: Journey = {
  name: 'drain by its deadline',
  prepare: async (stand) => {
    const node = await aNodeToDrain(stand, { terminationGracePeriod: '16s' })
    guardedPods(stand, node, 3)
    stand.createPod('held', node, { labels: { app: 'held' }, annotations: protectedFor('true') })
    stand.createPod('plain', node, { labels: { app: 'plain' } })
    await stand.until(() => stand.runningPods().length === 5)
  },
  begin: (stand) => {
    stand.delete(kinds.node, stand.claim('a')?.status?.nodeName ?? '')
  },
  isOver: isDrained,
}

/** A NodePool is deleted while one of its claims is a node and another is being launched. */
export const termination: Journey = {
  name: 'termination',
  prepare: async (stand) => {
    stand.createClaim('a')
    await stand.until(() => stand.holds('a', 'Initialized'))
  },
  begin: (stand) => {
    stand.createClaim('b')
    stand.world.clock.after(100, () => {
      stand.delete(karpenterKinds.nodePool, 'default')
    })
  },
  isOver: ({ world }) => world.claims().length === 0 && world.nodes().length === 0,
}

const keepsNodes = { featureGates: { ...defaultSettings.featureGates, staticCapacity: true } }
const isUpToDate = ({ metadata }: NodeClaim) => metadata.labels?.team === 'b'
const areTwoNodes = (stand: Stand) =>
  stand.world.claims().length === 2 &&
  stand.world.nodes().length === 2 &&
  stand.world.claims().every(({ metadata }) => stand.holds(metadata.name, 'Initialized'))

/** The template of a pool that keeps two nodes changes; each node gets its successor, one at a time. */
export const staticDrift: Journey = {
  name: 'static drift',
  options: {
    settings: keepsNodes,
    pool: { replicas: 2, disruption: { consolidateAfter: 'Never', budgets: [{ nodes: '1' }] } },
  },
  prepare: async (stand) => {
    await stand.until(() => areTwoNodes(stand))
  },
  begin: ({ world }) => {
    world.cluster.server.local.patch(karpenterKinds.nodePool, undefined, 'default', {
      spec: { template: { metadata: { labels: { team: 'b' } } } },
    })
  },
  isOver: (stand) => areTwoNodes(stand) && stand.world.claims().every(isUpToDate),
}

/** A node that is too large for its one pod makes room for a cheaper one, and goes once that is ready. */
export const consolidation: Journey = {
  name: 'consolidation',
  options: { pool: { disruption: { consolidateAfter: 'Never', budgets: [{ nodes: '100%' }] } } },
  prepare: async (stand) => {
    const { world, largestType, ledger } = stand
    const only = (key: string, value: string) => ({ key, operator: 'In' as const, values: [value] })
    stand.createClaim('a', {
      requirements: [only(labels.instanceType, largestType), only(labels.capacityType, 'on-demand')],
    })
    await stand.until(() => stand.holds('a', 'Initialized'))
    world.create(deploymentKind, aSpreadDeployment(1))
    await stand.until(() => isAllRunning(stand, 1))
    const launched = new Set<string>()
    world.cluster.server.local.subscribe<NodeClaim>(karpenterKinds.nodeClaim, {
      added: ({ metadata }) => {
        if (metadata.name === 'a') return
        launched.add(metadata.name)
        if (launched.size > 1)
          ledger.violations.push(`replacements were launched twice: ${[...launched].join()}`)
      },
    })
    world.cluster.server.local.subscribe<Pod>(kinds.pod, {
      updated: ({ metadata }) => {
        if (metadata.deletionTimestamp === undefined) return
        if (![...launched].some((name) => stand.holds(name, 'Initialized')))
          ledger.violations.push(`pod ${metadata.name} had to go before a replacement was ready`)
      },
    })
  },
  begin: ({ world }) => {
    world.cluster.server.local.patch(karpenterKinds.nodePool, undefined, 'default', {
      spec: { disruption: { consolidateAfter: '0s' } },
    })
  },
  isOver: (stand) =>
    stand.claim('a') === undefined && stand.world.nodes().length === 1 && isAllRunning(stand, 1),
}
