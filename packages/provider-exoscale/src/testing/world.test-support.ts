/** A provider with its fake cloud and fake cluster on virtual time, and builders. */
import { kinds, karpenterKinds, type NodeClaim, type NodePool, type Requirement } from '@tenon/api'
import type { Controller, ControllerOptions, KubeClient } from '@tenon/kube'
import type { CloudProvider } from '@tenon/provider'
import { MemoryKube } from '@tenon/provider/contract-suite'
import { JsonLogger, SeededRandom, Secret, type Transport, VirtualClock } from '@tenon/runtime'
import { ExoscaleClient } from '../api/client.ts'
import type { PriceFile } from '../catalogue/prices.ts'
import {
  type ExoscaleNodeClass,
  type ExoscaleNodeClassSpec,
  exoscaleNodeClassKind,
} from '../nodeclass/types.ts'
import { readExoscaleOptions } from '../options.ts'
import { createExoscaleProvider } from '../provider.ts'
import { clusterId, FakeCloud, templateId, zone } from './fake-cloud.test-support.ts'

export interface World {
  readonly clock: VirtualClock
  readonly cloud: FakeCloud
  readonly kube: MemoryKube
  readonly api: ExoscaleClient
  readonly provider: CloudProvider
  /** Reconciles a key of a started controller once. */
  readonly reconcile: (controller: string, key: string) => ReturnType<ControllerOptions['reconcile']>
  /** Keys that a started controller was told to look at since the last question. */
  readonly woken: (controller: string) => readonly string[]
  /** Lines of the log, as the process writes them. */
  readonly log: readonly string[]
  /** Runs until the promise settles, moving time as far as it takes. */
  readonly settle: <T>(work: Promise<T>) => Promise<T>
}

/** What several processes share, and how one of them reaches it. */
export interface Ground {
  readonly clock: VirtualClock
  readonly cloud: FakeCloud
  readonly kube: MemoryKube
  readonly transport: Transport
  readonly client: KubeClient
}

export function aGround(): Ground {
  const clock = new VirtualClock()
  const cloud = new FakeCloud(clock)
  const kube = new MemoryKube(clock)
  return { clock, cloud, kube, transport: cloud, client: kube }
}

export function aWorld(
  env: Record<string, string> = {},
  ground: Ground = aGround(),
  priceFile: PriceFile = {},
): World {
  const { clock, cloud, kube, transport, client } = ground
  const credentials = { key: 'EXOtest', secret: new Secret('s3cret-value') }
  const api = new ExoscaleClient({ transport, basePath: '/v2', credentials, clock, userAgent: 'test' })
  const read = readExoscaleOptions({
    EXOSCALE_ZONE: zone,
    EXOSCALE_SKS_CLUSTER_ID: clusterId,
    EXOSCALE_API_KEY: 'EXOtest',
    EXOSCALE_API_SECRET: 's3cret-value',
    ...env,
  })
  if (!('ok' in read)) throw new Error(read.error)
  const controllers = new Map<string, ControllerOptions>()
  const woken: { readonly controller: string; readonly key: string }[] = []
  const log: string[] = []
  const provider = createExoscaleProvider({
    options: read.ok,
    cloud: { api, priceFile },
    kubernetes: {
      client,
      events: kube.recorder,
      caches: {
        nodeClasses: kube.cache(exoscaleNodeClassKind),
        nodeClaims: kube.cache(karpenterKinds.nodeClaim),
        nodes: kube.cache(kinds.node),
      },
    },
    joining: { clusterEndpoint: 'https://cluster.example:6443', certificateAuthority: 'PEM' },
    runtime: {
      clock,
      random: new SeededRandom(1),
      logger: new JsonLogger(clock, (line) => log.push(line), { value: 'debug' }),
    },
    createController: (options) => {
      controllers.set(options.name, options)
      return idleController(options.name, (key) => woken.push({ controller: options.name, key }))
    },
  })
  provider.startControllers(new AbortController().signal)
  return {
    clock,
    cloud,
    kube,
    api,
    provider,
    reconcile: (name, key) => {
      const options = controllers.get(name)
      if (options === undefined) throw new Error(`no controller ${name}`)
      return settleOn(clock, options.reconcile(key, new AbortController().signal))
    },
    settle: (work) => settleOn(clock, work),
    woken: (name) => woken.splice(0).flatMap(({ controller, key }) => (controller === name ? [key] : [])),
    log,
  }
}

function idleController(name: string, enqueue: (key: string) => void): Controller {
  return { name, enqueue, start() {}, stop: async () => {}, depth: 0 }
}

async function settleOn<T>(clock: VirtualClock, work: Promise<T>): Promise<T> {
  let isDone = false
  const watched = work.finally(() => {
    isDone = true
  })
  watched.catch(() => {})
  await clock.advanceUntil(() => isDone, 24 * 3_600_000)
  return watched
}

export function aNodeClass(
  spec: ExoscaleNodeClassSpec = { templateID: templateId },
  status: Partial<ExoscaleNodeClass['status']> = {},
): ExoscaleNodeClass {
  const ready = {
    type: 'Ready',
    status: 'True',
    reason: 'Ready',
    message: '',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  } as const
  return {
    apiVersion: 'karpenter.exoscale.com/v1',
    kind: 'ExoscaleNodeClass',
    metadata: { name: 'standard' },
    spec,
    status: { conditions: [ready], ...status },
  }
}

export function aClaim(name = 'pool-abcde', change: Partial<NodeClaim['spec']> = {}): NodeClaim {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: { name, uid: `uid-${name}`, labels: { 'karpenter.sh/nodepool': 'pool' } },
    spec: {
      nodeClassRef: { group: 'karpenter.exoscale.com', kind: 'ExoscaleNodeClass', name: 'standard' },
      requirements: [typesIn('standard.medium', 'standard.large', 'standard.small')],
      ...change,
    },
  }
}

export function aPool(): NodePool {
  const { nodeClassRef } = aClaim().spec
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name: 'pool' },
    spec: { template: { spec: { nodeClassRef, requirements: [] } } },
  }
}

export function typesIn(...values: string[]): Requirement {
  return { key: 'node.kubernetes.io/instance-type', operator: 'In', values }
}
