import type { Pod } from '@tenon/api'
import type { NodeTemplate } from '../model.ts'

/** A way to help pods: this many nodes of one group. */
export interface ExpansionOption {
  readonly groupId: string
  readonly nodeCount: number
  readonly pods: readonly Pod[]
  readonly template: NodeTemplate
}
