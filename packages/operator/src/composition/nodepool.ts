/** Builds what keeps with NodePools what their nodes have taught. */
import type { CapacityLearning } from '../cloud/corrected-provider.ts'
import { NodePoolLearning } from '../nodepool/learning.ts'
import { LearningReport } from '../nodepool/learning-report.ts'
import { PoolMemory } from '../nodepool/pool-memory.ts'
import type { Assembly } from './parts.ts'

export function learningOf(parts: Assembly, learning: CapacityLearning): NodePoolLearning {
  return new NodePoolLearning({
    ...parts,
    learning,
    memory: new PoolMemory(parts),
    report: new LearningReport(parts),
  })
}
