# Writes the workload `small.yaml`, which runs in a fraction of a second.
printf '%s\n' 'model: {name: small}' 'framework: pytorch' \
    'dataset: {data_folder: data, format: npz, num_files_train: 16, record_length_bytes: 65536}' \
    'reader: {batch_size: 4, read_threads: 1}' 'train: {epochs: 1, computation_time: 0.01}' > small.yaml
