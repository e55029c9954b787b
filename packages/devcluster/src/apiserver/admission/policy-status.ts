import type { StoredObject } from '../../contract.ts'
import type { ServerContext } from '../context.ts'
import type { Served } from '../kinds/registry.ts'
import { policyStatus } from './type-checking.ts'

/** A ValidatingAdmissionPolicy with its computed status; other objects unchanged. */
export function policyOf({ registry }: ServerContext, served: Served, object: StoredObject): StoredObject {
  const { group, kind } = served.definition
  if (group !== 'admissionregistration.k8s.io' || kind !== 'ValidatingAdmissionPolicy') return object
  const status = { ...(object['status'] as object | undefined) }
  const { generation = 1 } = object.metadata
  return { ...object, status: { ...status, ...policyStatus(registry, object, generation) } }
}
