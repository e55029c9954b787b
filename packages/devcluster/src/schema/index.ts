/** What every kind of the embedded Kubernetes looks like, and how its objects merge. */
export { builtinDefinitions } from './builtin-definitions.ts'
export { fieldCauses, fieldErrorsMessage, fieldErrorText, qualifiedKind } from './field-errors.ts'
export { jsonPatch } from './patch/json-patch.ts'
export { mergePatch } from './patch/merge-patch.ts'
export { type PatchResult, strategicMergePatch } from './patch/strategic-merge-patch.ts'
export { type CompiledCrd, compileCrd } from './crd/compile-crd.ts'
export {
  type ApplyConflict,
  applyConflictMessage,
  type ApplyInput,
  type ApplyResult,
  applyServerSide,
} from './apply/server-side-apply.ts'
export { type TrackInput, trackManagedFields } from './apply/track-managed-fields.ts'
export { openApiV2, openApiV3, openApiV3Index } from './openapi/documents.ts'
export { decodingError } from './validation/shape.ts'
