/** Prints a migration: for people, or with `-o json` one object a line for programs (adoption.md 2). */
import { counted } from '@tenon/api'
import type { Move } from '@tenon/ask'
import { type Clock, rfc3339 } from '@tenon/runtime'
import { type Plan, planText } from './plan.ts'
import type { Progress } from './progress.ts'

interface PlanEnd {
  readonly isConfirmed: boolean
  /** Why the plan cannot be carried out. */
  readonly problem: string | undefined
}

export interface Printer {
  readonly plan: (plan: Plan, end: PlanEnd) => void
  readonly tell: (progress: Progress) => void
}

export function textPrinter(out: (text: string) => void): Printer {
  return {
    plan: (plan, { isConfirmed, problem }) => {
      out(`${planText(plan)}\n`)
      if (isConfirmed) return
      out(
        problem === undefined
          ? 'Nothing has been changed. The same command with --yes does it.\n'
          : `Nothing has been changed. Before --yes does it: ${problem}\n`,
      )
    },
    tell: (progress) => {
      out(progressLines(progress))
    },
  }
}

function progressLines(progress: Progress): string {
  switch (progress.event) {
    case 'waiting':
      return `${progress.holder} holds the lease: waiting until it renews it, or has not for 30s\n`
    case 'paused':
    case 'resumed':
      return `launches of nodepool/${progress.nodePool} ${progress.event}\n`
    case 'cordoned':
    case 'uncordoned':
      return `node/${progress.node} ${progress.event}\n`
    case 'removed':
      return `node/${progress.node} drained, its removal has begun\n`
    case 'growing':
      return `${progress.group} grows from ${progress.from} to ${counted(progress.to, 'node')}\n`
    case 'draining':
      return `node/${progress.node}: ${counted(progress.pods, 'pod')} to move, ${counted(progress.nodesAfter, 'node')} after it\n`
    case 'stopped':
      // The error on stderr says it.
      return ''
    case 'ended': {
      const { pausedNodePool: pool, removed } = progress
      const rest =
        pool === undefined
          ? ''
          : `nodepool ${pool} launches nothing until: tenon resume nodepool/${pool}; delete it if it is not needed any more\n`
      return `${counted(removed, 'node')} removed\n${rest}`
    }
  }
}

/** A MigrationPlan. */
export interface PrintedPlan
  extends Pick<Plan, 'from' | 'to' | 'turns' | 'staying'>,
    Pick<Move, 'priceBefore' | 'priceAfter' | 'added'> {
  readonly comingNodes: number
  readonly podsLosingFiles: readonly string[]
  readonly currency?: string
  readonly problem?: string
}

export function jsonPrinter(out: (text: string) => void, clock: Clock): Printer {
  const line = (kind: string, fields: object) => {
    out(
      `${JSON.stringify({ apiVersion: 'tenon.sh/v1alpha1', kind, time: rfc3339(clock.now()), ...fields })}\n`,
    )
  }
  return {
    plan: (plan, { problem }) => {
      line('MigrationPlan', printedPlan(plan, problem))
    },
    tell: (progress) => {
      line('MigrationProgress', progress)
    },
  }
}

function printedPlan(
  { coming, from, losing, move, priceUnit, staying, to, turns }: Plan,
  problem: string | undefined,
): PrintedPlan {
  return {
    from,
    to,
    turns,
    staying,
    comingNodes: coming.length,
    podsLosingFiles: losing,
    priceBefore: move.priceBefore,
    priceAfter: move.priceAfter,
    added: move.added,
    ...(priceUnit !== undefined && { currency: priceUnit }),
    ...(problem !== undefined && { problem }),
  }
}
