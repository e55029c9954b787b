/** Checks objects against CustomResourceDefinitions; nothing of the cluster is loaded with it. */
export { type CheckedCustomResource, type CrdChecker, createCrdChecker } from './schema/crd/crd-checker.ts'
export { fieldErrorText } from './schema/field-errors.ts'
