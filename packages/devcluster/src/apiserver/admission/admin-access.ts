/** `adminAccess` in ResourceClaims, which only certain namespaces allow. */
import { ownValue } from '@tenon/api'
import type { FieldError, StoredObject } from '../../contract.ts'
import { keyOf } from '../../storage/index.ts'
import type { ServerContext } from '../context.ts'
import type { Served } from '../kinds/registry.ts'

const namespaceLabel = 'resource.kubernetes.io/admin-access'

interface Request {
  readonly exactly?: { readonly adminAccess?: unknown }
}

interface Requests {
  readonly devices?: { readonly requests?: readonly Request[] }
}

/** Errors of a new claim or claim template that requests admin access in another namespace. */
export function adminAccessErrors(
  ctx: ServerContext,
  { collection }: Served,
  { metadata, spec }: StoredObject & { readonly spec?: Requests & { readonly spec?: Requests } },
): readonly FieldError[] {
  const asked =
    collection === 'resourceclaims.resource.k8s.io'
      ? spec
      : collection === 'resourceclaimtemplates.resource.k8s.io'
        ? spec?.spec
        : undefined
  const requests = asked?.devices?.requests
  // The validation of the whole object reports what is not a list.
  const index = Array.isArray(requests)
    ? requests.findIndex(({ exactly }: Request) => exactly?.adminAccess === true)
    : -1
  if (index < 0) return []
  const namespace = ctx.store.collection('namespaces').get(keyOf(undefined, metadata.namespace ?? ''))
  if (ownValue(namespace?.metadata.labels, namespaceLabel) === 'true') return []
  const detail = `admin access to devices requires the \`${namespaceLabel}: true\` label on the containing namespace`
  // For a template the API server names the same field, and only the first of several requests.
  return [{ field: `spec.devices.requests[${index}].adminAccess`, kind: 'forbidden', detail }]
}
