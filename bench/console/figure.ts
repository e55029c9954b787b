/** What the parts of the benchmark have in common. */
import { readFileSync } from 'node:fs'
import type { Clock } from '@tenon/runtime'
import type { ControllerProcess } from '../control-plane/controller-process.ts'

export interface Figure {
  readonly name: string
  readonly value: number
  /** It should be less. */
  readonly target?: number
}

/** What is looked at. */
export interface Stand {
  readonly clock: Clock
  readonly kubeconfig: string
  readonly controller: ControllerProcess
  /** Of its debug port. */
  readonly controllerUrl: string
  readonly size: { readonly nodes: number; readonly pods: number }
  /** How long somebody looks while things change. */
  readonly seconds: number
  /** Changes pods until it resolves. */
  readonly churn: () => Promise<void>
}

/** No event loop is held for longer, and no key waits for longer; milliseconds. */
export const heldTarget = 50

export function part(all: readonly number[], share: number): number {
  return all.toSorted((a, b) => a - b)[Math.min(all.length - 1, Math.floor(all.length * share))] ?? Number.NaN
}

/** Processor time of a process so far, in milliseconds. */
export function cpuMs(pid: number | undefined): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const [user = 0, system = 0] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
    .map(Number)
  return (user + system) * 10
}

/** The most memory that a process has taken. */
export function peakMiB(pid: number | undefined): number {
  const [, kibibytes] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kibibytes) / 1024
}
