/** What the server shows. */
import type { ObjectReader } from '../answers/object.ts'
import type { ConsoleModel } from '../model/model.ts'

/** The view of the model that the server needs. */
export type LiveView = Pick<
  ConsoleModel,
  | 'header'
  | 'isBehind'
  | 'journal'
  | 'past'
  | 'podsOf'
  | 'podsOn'
  | 'relationsOf'
  | 'search'
  | 'settle'
  | 'takeChanges'
  | 'view'
>

/** A cluster that is followed. */
export interface FollowedCluster {
  readonly view: LiveView
  readonly objects: ObjectReader
}
