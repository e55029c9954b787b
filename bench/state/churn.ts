/** Changes of pods as in a busy cluster, at a given rate. */
import { kinds } from '@tenon/api'
import type { LocalApi } from '@tenon/devcluster'
import { type Clock, rfc3339 } from '@tenon/runtime'
import { newPod, nodeName, runningStatus, type Size } from './population.ts'

/** In turn: statuses change most, and a created pod is bound and later deleted. */
const turn = ['status', 'create', 'status', 'bind', 'delete'] as const
const tickMs = 50

interface Named {
  readonly namespace: string
  readonly name: string
  readonly index: number
}

export class Churn {
  readonly #api: LocalApi
  readonly #clock: Clock
  readonly #size: Size
  /** Pods that are not bound yet, and running ones; oldest first. */
  readonly #unbound: Named[] = []
  readonly #serving: Named[]
  #next: number
  #step = 0

  constructor(api: LocalApi, clock: Clock, size: Size) {
    this.#api = api
    this.#clock = clock
    this.#size = size
    this.#next = size.pods
    this.#serving = api
      .list(kinds.pod)
      .map(({ metadata: { namespace = '', name } }, index) => ({ namespace, name, index }))
  }

  /** @returns the number of changes. */
  async run(perSecond: number, seconds: number): Promise<number> {
    const start = this.#clock.monotonic()
    let made = 0
    while (made < perSecond * seconds) {
      const due = Math.min(perSecond * seconds, ((this.#clock.monotonic() - start) / 1000) * perSecond)
      for (; made < due; made++) this.#change()
      await this.#clock.sleep(tickMs)
    }
    return made
  }

  #change(): void {
    const at = rfc3339(this.#clock.now())
    switch (turn[this.#step++ % turn.length]) {
      case 'create':
        return this.#create(at)
      case 'bind':
        return this.#bind()
      case 'delete':
        return this.#delete()
      case 'status':
      case undefined:
        return this.#report(at)
    }
  }

  #create(at: string): void {
    const index = this.#next++
    const { metadata, spec } = newPod(index, at)
    const { name, namespace = '' } = metadata
    this.#api.create(kinds.pod, { apiVersion: 'v1', kind: 'Pod', metadata, spec })
    this.#unbound.push({ namespace, name, index })
  }

  #bind(): void {
    const pod = this.#unbound.shift()
    if (pod === undefined) return
    this.#api.bind(pod.namespace, pod.name, nodeName((pod.index * 7919) % this.#size.nodes))
    this.#serving.push(pod)
  }

  #delete(): void {
    const pod = this.#serving.shift()
    if (pod !== undefined) this.#api.delete(kinds.pod, pod.namespace, pod.name, { gracePeriodSeconds: 0 })
  }

  #report(at: string): void {
    const pod = this.#serving[(this.#step * 7919) % this.#serving.length]
    if (pod === undefined) return
    const status = runningStatus(pod.index, at, this.#step)
    this.#api.patch(kinds.pod, pod.namespace, pod.name, { status }, 'status')
  }
}
