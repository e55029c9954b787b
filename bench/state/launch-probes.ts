/** Measures how long a pod waits for the NodeClaim of its node. */
import { karpenterKinds, labels, type NodeClaim, type Pod } from '@tenon/api'
import type { LocalApi } from '@tenon/devcluster'
import { type Clock, rfc3339 } from '@tenon/runtime'
import { createUnschedulable } from './pending-pods.ts'
import { newPod } from './population.ts'

const label = { app: 'launch-probe' }
const firstIndex = 20_000_000
const giveUpMs = 60_000
const pollMs = 2
/** Pause between two pods: the batch of the first must be over. */
const restMs = 500

export class LaunchProbes {
  readonly #api: LocalApi
  readonly #clock: Clock
  #count = 0

  constructor(api: LocalApi, clock: Clock) {
    this.#api = api
    this.#clock = clock
  }

  /** @returns milliseconds for each pod; each gets its own node. */
  async run(pods: number): Promise<readonly number[]> {
    const waitedMs: number[] = []
    const known = new Set(this.#api.list(karpenterKinds.nodeClaim).map(({ metadata }) => metadata.name))
    const claims: string[] = []
    const stop = this.#api.subscribe<NodeClaim>(karpenterKinds.nodeClaim, {
      added: ({ metadata }) => {
        if (!known.has(metadata.name)) claims.push(metadata.name)
      },
    })
    try {
      for (let index = 0; index < pods; index++) {
        const before = claims.length
        const startMs = this.#clock.monotonic()
        const at = rfc3339(this.#clock.now())
        const pod = probePod(firstIndex + this.#count++, at)
        createUnschedulable(this.#api, pod, at)
        await this.#until('no NodeClaim comes for a pod', () => claims.length > before)
        waitedMs.push(this.#clock.monotonic() - startMs)
        await this.#bind(pod, claims[before] ?? '')
        await this.#clock.sleep(restMs)
      }
    } finally {
      stop()
    }
    return waitedMs
  }

  /** Acts as kube-scheduler: a node without its pod would keep the next one from being launched. */
  async #bind({ metadata }: Pod, claim: string): Promise<void> {
    const nodeOf = () => this.#api.get(karpenterKinds.nodeClaim, undefined, claim)?.status?.nodeName ?? ''
    await this.#until('a NodeClaim gets no node', () => nodeOf() !== '')
    this.#api.bind(metadata.namespace ?? '', metadata.name, nodeOf())
  }

  async #until(problem: string, holds: () => boolean): Promise<void> {
    const startMs = this.#clock.monotonic()
    while (!holds()) {
      if (this.#clock.monotonic() - startMs > giveUpMs) throw new Error(problem)
      await this.#clock.sleep(pollMs)
    }
  }
}

/** A pod that needs its own node: those of the population have 16 cores. */
function probePod(index: number, at: string): Pod {
  const pod = newPod(index, at)
  return {
    ...pod,
    metadata: { ...pod.metadata, name: `launch-probe-${index}`, namespace: 'team-0', labels: label },
    spec: {
      ...pod.spec,
      containers: [{ name: 'app', image: 'app', resources: { requests: { cpu: '20', memory: '1Gi' } } }],
      affinity: {
        podAntiAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            { labelSelector: { matchLabels: label }, topologyKey: labels.hostname },
          ],
        },
      },
    },
  }
}
