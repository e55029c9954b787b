import type { StoredObject } from '../contract.ts'

const serialised = new WeakMap<object, string>()

/**
 * The JSON text of a stored object, made once and shared by every list and watcher: stored objects
 * are never changed in place, so one object is one revision.
 */
export function jsonOf(object: StoredObject): string {
  let text = serialised.get(object)
  if (text === undefined) {
    text = JSON.stringify(object)
    serialised.set(object, text)
  }
  return text
}
