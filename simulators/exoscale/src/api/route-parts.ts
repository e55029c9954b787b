import type { CloudContext } from '../zone/cloud-state.ts'
import type { InstanceLife } from '../instances/instance-life.ts'
import type { ListedInstances } from '../instances/listed-instances.ts'
import type { Operations } from '../instances/operations.ts'

/** What routes with changes need. */
export interface RouteParts {
  readonly context: CloudContext
  readonly operations: Operations
  readonly life: InstanceLife
  readonly listed: ListedInstances
}
