/**
 * After a pause, budgets open over ten minutes: one node of each NodePool, then twice as many every two minutes
 * (wanted.md 5). When a pause ended is read from the objects, so a restart changes nothing.
 */
import type { NodePool } from '@tenon/api'
import type { Clock } from '@tenon/runtime'
import type { Caches } from '../state/caches.ts'
import type { Brake } from '../state/pause.ts'
import type { Command } from './commands/command.ts'

interface Dependencies {
  readonly caches: { readonly nodePools: Pick<Caches['nodePools'], 'list'> }
  readonly state: { readonly brake: Pick<Brake, 'endedMs' | 'holding'> }
  readonly clock: Pick<Clock, 'now'>
}

/** What matters of a command. */
interface Begun extends Pick<Command, 'reason'> {
  readonly candidates: readonly { readonly pool: Pick<NodePool, 'metadata'> }[]
}

const stepMs = 2 * 60_000
const steps = 5

export interface PaceStep {
  /** How many nodes of the NodePool may be taken in this step, and be under way at a time. */
  readonly nodes: number
  /** How many this process has taken in this step. */
  readonly taken: number
  /** Unix milliseconds. */
  readonly sinceMs: number
  readonly untilMs: number
}

export class ResumePace {
  readonly #deps: Dependencies
  /** Nodes taken in a step, by NodePool. */
  readonly #taken = new Map<string, { readonly sinceMs: number; readonly nodes: number }>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Undefined if no pause has ended in the last ten minutes. */
  stepOf(pool: string): PaceStep | undefined {
    const nowMs = this.#deps.clock.now()
    const endedMs = this.#deps.state.brake.endedMs(pool, nowMs)
    const step = endedMs === undefined ? steps : Math.floor((nowMs - endedMs) / stepMs)
    if (endedMs === undefined || step >= steps) return undefined
    const sinceMs = endedMs + step * stepMs
    const last = this.#taken.get(pool)
    const taken = last?.sinceMs === sinceMs ? last.nodes : 0
    return { nodes: 2 ** step, taken, sinceMs, untilMs: sinceMs + stepMs }
  }

  /** A command has begun. Repairs wait for no pace, and take no part of it. */
  begun({ candidates, reason }: Begun): void {
    if (reason === 'Unhealthy') return
    for (const { pool } of candidates) {
      const { name } = pool.metadata
      const { sinceMs, taken = 0 } = this.stepOf(name) ?? {}
      if (sinceMs === undefined) this.#taken.delete(name)
      else this.#taken.set(name, { sinceMs, nodes: taken + 1 })
    }
  }

  /** When the next step of a NodePool begins, or its pause ends. */
  nextChangeMs(nowMs: number): number | undefined {
    const { caches, state } = this.#deps
    const times = caches.nodePools.list().flatMap(({ metadata: { name } }) => {
      const { untilMs = state.brake.holding(name, 'voluntary')?.untilMs } = this.stepOf(name) ?? {}
      return untilMs !== undefined && untilMs > nowMs ? [untilMs] : []
    })
    return times.length === 0 ? undefined : Math.min(...times)
  }
}
