# Makes a folder `photos` of 96 jpeg files.
printf '%s\n' 'model: {name: pictures}' 'framework: pytorch' \
    'dataset: {data_folder: made, format: jpeg, num_files_train: 96, record_length_bytes: 30000}' \
    'reader: {batch_size: 8}' > pictures.yaml
feedrate generate pictures.yaml --quiet
mkdir photos
find made -name '*.jp*g' -exec mv {} photos \;
rm -r made
