/** Replicas that another field manager sets back each time. */
import { compareResourceVersions } from '@tenon/api'
import type { Clock } from '@tenon/runtime'
import { managerOfReplicas } from '../catalogue/growth.ts'
import type { Scalable } from './scalable.ts'

/** What is set back later than that is a new decision. */
const withinMs = 10 * 60_000
/** In a row, however far apart: a Node must be unneeded for long before replicas are lowered again. */
const mostUndone = 2

interface Written {
  readonly from: number
  readonly to: number
  readonly resourceVersion: string
  readonly atMs: number
  isUndone: boolean
}

/** The last write of one resource, and what became of it. Instants are monotonic. */
export class ReplicaContest {
  readonly #clock: Pick<Clock, 'monotonic'>
  #written: Written | undefined
  #undone = 0
  #blocked: { readonly replicas: number | undefined; readonly manager: string | undefined } | undefined

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  wrote(from: number, to: number, resourceVersion: string): void {
    if (this.#written?.isUndone === false) this.#undone = 0
    this.#written = { from, to, resourceVersion, atMs: this.#clock.monotonic(), isUndone: false }
  }

  /** The number last written, as long as `object` does not show it yet. */
  newerThan({ metadata: { resourceVersion = '' } }: Scalable): number | undefined {
    if (this.#written === undefined) return undefined
    const order = compareResourceVersions(resourceVersion, this.#written.resourceVersion)
    return order !== undefined && order < 0 ? this.#written.to : undefined
  }

  /** Looks at a state of the resource, read or cached. */
  observe(object: Scalable): void {
    const written = this.#written
    if (written === undefined || this.newerThan(object) !== undefined) return
    const replicas = object.spec?.replicas
    const manager = managerOfReplicas(object)
    const { from, to } = written
    const isBack = replicas !== undefined && (to > from ? replicas <= from : replicas >= from)
    if (isBack && !written.isUndone) {
      written.isUndone = true
      this.#undone = this.#clock.monotonic() - written.atMs < withinMs ? this.#undone + 1 : 0
      if (this.#undone >= mostUndone) this.#blocked = { replicas, manager }
    }
    if (this.#blocked !== undefined)
      if (this.#blocked.replicas !== replicas || this.#blocked.manager !== manager) {
        this.#blocked = undefined
        this.#undone = 0
      }
  }

  /** Whether the last write was set back. */
  get isUndone(): boolean {
    return this.#written?.isUndone === true
  }

  /** Why nothing is written any more: a clause; undefined if it may be written. */
  get because(): string | undefined {
    if (this.#blocked === undefined) return undefined
    const { manager = 'another field manager' } = this.#blocked
    return `${manager} has set spec.replicas back twice: leave replicas out of what it applies, for a topology out of spec.topology.workers of the Cluster`
  }
}
