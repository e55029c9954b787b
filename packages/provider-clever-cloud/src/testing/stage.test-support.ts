/** The provider on a Kubernetes API in a map. */
import { karpenterKinds, kinds, labels, type NodeClaim, type NodePool } from '@tenon/api'
import { createController, type KubeClient } from '@tenon/kube'
import { MemoryKube } from '@tenon/provider/contract-suite'
import { JsonLogger, silentLogger, VirtualClock } from '@tenon/runtime'
import { Catalogue } from '../catalogue/catalogue.ts'
import { type FlavorOverrides, noOverrides } from '../catalogue/overrides.ts'
import { createCleverCloudProvider } from '../create-provider.ts'
import { CleverMetrics } from '../metrics.ts'
import { type CleverNodeClass, cleverNodeClassKind } from '../nodeclass/types.ts'
import { nodeGroupKind } from '../nodegroup/types.ts'
import type { CleverCloudProvider } from '../provider.ts'
import { FakePlatform } from './fake-platform.test-support.ts'

const nodeClassRef = { group: cleverNodeClassKind.group, kind: cleverNodeClassKind.kind, name: 'default' }

/** A NodePool of the class `default`. */
export const pool: NodePool = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodePool',
  metadata: { name: 'default' },
  spec: { template: { spec: { nodeClassRef, requirements: [] } } },
}

/** The class `default`, ready unless said otherwise. */
export function aNodeClass(parts: Partial<CleverNodeClass> = {}): CleverNodeClass {
  return {
    apiVersion: 'karpenter.clever-cloud.com/v1alpha1',
    kind: 'CleverNodeClass',
    metadata: { name: 'default' },
    spec: {},
    status: { conditions: [readiness('True')] },
    ...parts,
  }
}

export function readiness(status: 'True' | 'False' | 'Unknown', message = '') {
  return { type: 'Ready', status, reason: 'Told', message, lastTransitionTime: '2026-01-01T00:00:00Z' }
}

/** A claim as the core makes it, with a request. */
export function aClaim(
  name: string,
  {
    flavors = ['2XS', 'XS', 'S', 'M'],
    cpu = '1',
    memory = '1Gi',
    own = {},
  }: {
    readonly flavors?: readonly string[]
    readonly cpu?: string
    readonly memory?: string
    readonly own?: Readonly<Record<string, string>>
  } = {},
): NodeClaim {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: { name, uid: `uid-${name}`, labels: { [labels.nodePool]: 'default', ...own } },
    spec: {
      nodeClassRef,
      requirements: [{ key: labels.instanceType, operator: 'In', values: flavors }],
      resources: { requests: { cpu, memory } },
    },
  }
}

/** The provider and what it runs on. */
export class Stage {
  readonly clock = new VirtualClock()
  readonly kube = new MemoryKube(this.clock)
  readonly platform = new FakePlatform(this.kube, this.clock)
  readonly metrics: CleverMetrics = new CleverMetrics()
  readonly catalogue: Catalogue
  readonly provider: CleverCloudProvider
  readonly #lines: string[] = []

  constructor({ overrides = noOverrides }: { readonly overrides?: FlavorOverrides } = {}) {
    this.catalogue = this.newCatalogue(overrides)
    this.kube.put(cleverNodeClassKind, aNodeClass())
    this.provider = this.newProvider(this.kube, this.catalogue)
  }

  newCatalogue(overrides: FlavorOverrides = noOverrides): Catalogue {
    return new Catalogue({ region: 'par', overrides, logger: silentLogger })
  }

  newProvider(client: KubeClient, catalogue: Catalogue = this.newCatalogue()): CleverCloudProvider {
    const { kube, clock, metrics } = this
    const logger = new JsonLogger(clock, (line) => this.#lines.push(line), { value: 'info' })
    return createCleverCloudProvider({
      kubernetes: {
        client: this.platform.client(client),
        events: kube.recorder,
        caches: {
          nodeClasses: kube.cache(cleverNodeClassKind),
          nodeClaims: kube.cache(karpenterKinds.nodeClaim),
          nodes: kube.cache(kinds.node),
          nodeGroups: () => kube.cache(nodeGroupKind),
        },
      },
      platform: { region: 'par', catalogue },
      metrics,
      runtime: { clock, logger },
      createController: (options) => createController(options, { clock, logger }),
    })
  }

  /** Runs a call to its end on virtual time. */
  async settled<T>(work: Promise<T>): Promise<T> {
    let isDone = false
    const note = () => {
      isDone = true
    }
    work.then(note, note)
    await this.clock.advanceUntil(() => isDone, 60_000)
    return await work
  }

  /** Puts a claim there and launches it. */
  async launch(claim: NodeClaim): ReturnType<CleverCloudProvider['create']> {
    return await this.settled(this.provider.create(this.kube.put(karpenterKinds.nodeClaim, claim)))
  }

  /** Lines of the provider's log of this level. */
  logged(level: 'warn' | 'error'): readonly string[] {
    return this.#lines.filter((line) => line.includes(`"level":"${level.toUpperCase()}"`))
  }

  /** Events so far, as reason and object. */
  events(): readonly string[] {
    return this.kube.events.map(({ reason, object }) => `${reason} ${object.metadata.name}`)
  }

  value(metric: Exclude<keyof CleverMetrics, 'all'>): number {
    return this.metrics[metric].value()
  }
}
