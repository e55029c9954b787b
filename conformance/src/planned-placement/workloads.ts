/** Workloads whose plans are interesting, and limits of their price. */
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

/** Per hour: the price if the cheapest nodes could be bought in fractions. */
export const lowerBoundPerHour = 29.3

/** Karpenter's time until the pods of the eight shapes are Ready, in seconds, on two cores. */
export const referenceSeconds = 25.9

/** Nodes of at most 16 CPU; the eight shapes need about 64 of them. */
export const smallNodes: Requirements = [
  { key: 'karpenter.kwok.sh/instance-cpu', operator: 'Lt', values: ['17'] },
]
