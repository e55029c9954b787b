import { perObject } from '@tenon/runtime'
import type { StoredObject } from '../contract.ts'

/**
 * The JSON text of a stored object, made once and shared by every list and watcher: stored objects
 * are never changed in place, so one object is one revision.
 */
export const jsonOf = perObject((object: StoredObject) => JSON.stringify(object))
