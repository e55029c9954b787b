/** Which ProvisioningRequests this process serves (gangs.md 1). */
import {
  ownValue,
  provisioningClasses,
  type ProvisioningRequest,
  type RequestClass,
  requestClassOf,
} from '@tenon/api'

const parameter = 'processorInstance'

/**
 * The class of a request that this process serves. With an instance: only check-capacity requests that name it, as a
 * parameter or as a prefix of their class. Without: all that name none.
 * @param instance of `--check-capacity-processor-instance`; may be empty.
 */
export function servedClassOf({ spec }: ProvisioningRequest, instance: string): RequestClass | undefined {
  const { provisioningClassName, parameters } = spec
  const named = ownValue(parameters, parameter) ?? ''
  if (instance !== '') {
    if (provisioningClassName === instance + provisioningClasses.check) return 'check'
    return provisioningClassName === provisioningClasses.check && named === instance ? 'check' : undefined
  }
  const of = requestClassOf(provisioningClassName)
  return of === 'check' && named !== '' ? undefined : of
}

/** The class of a request whose capacity counts, whoever serves it. */
export function bookedClassOf(request: ProvisioningRequest, instance: string): RequestClass | undefined {
  return requestClassOf(request.spec.provisioningClassName) ?? servedClassOf(request, instance)
}
