/** Pods whose plan is worth following, and what they may cost. */
import type { Group, Requirements } from './stand.ts'

/** Shapes that fit together on nodes of several kinds. */
export const eightShapes: readonly Group[] = [
  ['250m', '512Mi'],
  ['500m', '1Gi'],
  ['1', '2Gi'],
  ['100m', '256Mi'],
  ['1500m', '4Gi'],
  ['2', '16Gi'],
  ['4', '8Gi'],
  ['750m', '6Gi'],
].map(([cpu = '', memory = ''], index) => ({ name: `shape-${index}`, replicas: 100, cpu, memory }))

/** Per hour: what the cheapest fractions of nodes would cost that hold the eight shapes. */
export const lowerBoundPerHour = 29.3

/** What Karpenter takes until the pods of the eight shapes are Ready, in seconds, on two cores. */
export const referenceSeconds = 25.9

/** Nodes of at most 16 CPU, of which the eight shapes take some 64. */
export const smallNodes: Requirements = [
  { key: 'karpenter.kwok.sh/instance-cpu', operator: 'Lt', values: ['17'] },
]
