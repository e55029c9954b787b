/** Shared by the parts of the benchmark. */
import { readFileSync } from 'node:fs'
import type { Clock } from '@tenon/runtime'
import type { ControllerProcess } from '../control-plane/controller-process.ts'

export interface Figure {
  readonly name: string
  readonly value: number
  /** An upper limit. */
  readonly target?: number
}

/** The measured cluster. */
export interface Stand {
  readonly clock: Clock
  readonly kubeconfig: string
  readonly controller: ControllerProcess
  /** URL of its debug port. */
  readonly controllerUrl: string
  readonly size: { readonly nodes: number; readonly pods: number }
  /** How long to measure while pods change. */
  readonly seconds: number
  /** Changes pods until it resolves. */
  readonly churn: () => Promise<void>
}

/** Limit in milliseconds for blocking an event loop, and for reacting to a key. */
export const heldTarget = 50

export function part(all: readonly number[], share: number): number {
  return all.toSorted((a, b) => a - b)[Math.min(all.length - 1, Math.floor(all.length * share))] ?? Number.NaN
}

/** CPU time of a process so far, in milliseconds. */
export function cpuMs(pid: number | undefined): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const [user = 0, system = 0] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
    .map(Number)
  return (user + system) * 10
}

/** Peak memory of a process. */
export function peakMiB(pid: number | undefined): number {
  const [, kibibytes] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kibibytes) / 1024
}
