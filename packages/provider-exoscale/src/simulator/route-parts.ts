import type { CloudContext } from './cloud-state.ts'
import type { InstanceLife } from './instance-life.ts'
import type { ListedInstances } from './listed-instances.ts'
import type { Operations } from './operations.ts'

/** What the routes that change something work with. */
export interface RouteParts {
  readonly context: CloudContext
  readonly operations: Operations
  readonly life: InstanceLife
  readonly listed: ListedInstances
}
