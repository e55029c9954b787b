import { perObject } from '@tenon/runtime'
import type { StoredObject } from '../contract.ts'

/**
 * The JSON text of a stored object, created once for all lists and watches, as stored objects are immutable.
 */
export const jsonOf = perObject((object: StoredObject) => JSON.stringify(object))
