/** ID for the examples of tools and arguments. */
export const exampleId = '3f2b8c1e-5d4a-4f6b-9c7d-8e9f0a1b2c3d'
