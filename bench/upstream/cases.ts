/**
 * Cases of the upstream performance suite with its thresholds (operations.md 13.3). The table names the cases
 * and gives the thresholds; two shapes of pods in equal numbers are what its first case is made of.
 */

/** Thresholds of one phase of a case; undefined: none. */
export interface Threshold {
  /** 95th percentile of the resident memory, in MiB. */
  readonly memoryMiB: number
  /** Average number of cores. */
  readonly cpuCores: number
  readonly minutes?: number
  /** Minimum share of the nodes' cpu and memory that pods request, in percent. */
  readonly cpuPercent?: number
  readonly memoryPercent?: number
}

/** What starts a phase; it is over when every pod is Ready and nothing changes any more. */
export type Change =
  | { readonly kind: 'scale'; readonly share: number }
  /** A label in the template of the NodePool. */
  | { readonly kind: 'drift' }

export interface Phase {
  readonly name: string
  readonly change: Change
  readonly threshold: Threshold
}

export interface Case {
  readonly name: string
  /** Number of Deployments that share the pods, small and large ones in turn. */
  readonly deployments: number
  readonly pods: number
  /** At most one pod of a Deployment per node. */
  readonly isSpread: boolean
  readonly phases: readonly Phase[]
}

export const shapes = [
  { cpu: '900m', memory: '3100Mi' },
  { cpu: '3500m', memory: '28Gi' },
] as const

const all: Change = { kind: 'scale', share: 1 }
const fewer: Change = { kind: 'scale', share: 0.7 }

export const cases: readonly Case[] = [
  {
    name: 'basic',
    deployments: 2,
    pods: 1000,
    isSpread: false,
    phases: [
      {
        name: 'scale-out',
        change: all,
        threshold: { memoryMiB: 260, cpuCores: 0.5, minutes: 2, cpuPercent: 53, memoryPercent: 65 },
      },
      { name: 'consolidation', change: fewer, threshold: { memoryMiB: 260, cpuCores: 0.25, minutes: 20 } },
    ],
  },
  {
    name: 'drift',
    deployments: 2,
    pods: 600,
    isSpread: false,
    phases: [
      { name: 'initial', change: all, threshold: { memoryMiB: 425, cpuCores: 0.7, minutes: 5 } },
      {
        name: 'drift',
        change: { kind: 'drift' },
        threshold: { memoryMiB: 470, cpuCores: 1.05, minutes: 50 },
      },
    ],
  },
  {
    name: 'hostNameSpreading',
    deployments: 2,
    pods: 1000,
    isSpread: true,
    phases: [
      {
        name: 'scale-out',
        change: all,
        threshold: { memoryMiB: 680, cpuCores: 1.15, minutes: 5, cpuPercent: 38, memoryPercent: 40 },
      },
      {
        name: 'consolidation',
        change: fewer,
        threshold: { memoryMiB: 575, cpuCores: 1, cpuPercent: 38, memoryPercent: 40 },
      },
    ],
  },
  {
    name: 'wideDeployments',
    deployments: 30,
    pods: 1000,
    isSpread: false,
    phases: [
      {
        name: 'scale-out',
        change: all,
        threshold: { memoryMiB: 370, cpuCores: 0.7, minutes: 5, cpuPercent: 20, memoryPercent: 20 },
      },
      {
        name: 'consolidation',
        change: fewer,
        threshold: { memoryMiB: 340, cpuCores: 0.3, minutes: 40, cpuPercent: 20, memoryPercent: 20 },
      },
    ],
  },
]
